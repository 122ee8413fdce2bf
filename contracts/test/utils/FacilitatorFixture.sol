// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {UsdcDeployment} from "./UsdcDeployment.sol";
import {Vm} from "./Vm.sol";

/// @title A facilitator, a token, and payers who can sign
abstract contract FacilitatorFixture is UsdcDeployment {
    address internal constant ADMIN = address(uint160(uint256(keccak256("admin"))));
    address internal constant OPERATOR = address(uint160(uint256(keccak256("operator"))));
    address internal constant RECOVERER = address(uint160(uint256(keccak256("recoverer"))));
    address internal constant PAUSER = address(uint160(uint256(keccak256("pauser"))));
    address internal constant ISSUER = address(uint160(uint256(keccak256("issuer"))));
    address internal constant RECIPIENT = address(uint160(uint256(keccak256("recipient"))));
    address internal constant STRANGER = address(uint160(uint256(keccak256("stranger"))));

    uint48 internal constant ADMIN_DELAY = 1 days;
    uint256 internal constant NOW = 1_800_000_000;
    uint256 internal constant PAYER_KEY = 0xa11ce;

    struct Outcome {
        bool settled;
        bool failed;
        address recipient;
        uint256 value;
        bytes reason;
    }

    IX402Facilitator internal facilitator;
    MockUSDC internal usdc;
    address internal payer;

    /// @dev A facilitator with one account per role, and a token with one payer.
    function deploy() internal {
        vm.warp(NOW);
        address[] memory operators = new address[](1);
        operators[0] = OPERATOR;
        facilitator = deployFacilitator(operators, RECOVERER, PAUSER);
        usdc = deployUsdc("USD Coin", "2", ISSUER);
        payer = vm.addr(PAYER_KEY);
        usdc.mint(payer, 1_000e6);
    }

    /// @dev Nothing is not minted: the token refuses it.
    function fund(address account, uint256 value) internal {
        if (value > 0) usdc.mint(account, value);
    }

    function deployFacilitator(address[] memory operators, address recoverer, address pauser)
        internal
        returns (IX402Facilitator)
    {
        bytes memory arguments = abi.encode(ADMIN_DELAY, ADMIN, operators, recoverer, pauser);
        return IX402Facilitator(deployCode("X402Facilitator", arguments));
    }

    /// @dev A valid authorization over `value` for the next hour.
    function authorize(address from, uint256 value, bytes32 nonce)
        internal
        view
        returns (IX402Facilitator.Authorization memory)
    {
        return IX402Facilitator.Authorization({
            from: from,
            value: value,
            validAfter: block.timestamp - 1,
            validBefore: block.timestamp + 1 hours,
            nonce: nonce
        });
    }

    function signPayment(uint256 key, IX402Facilitator.Authorization memory authorization)
        internal
        view
        returns (IX402Facilitator.Payment memory)
    {
        return IX402Facilitator.Payment({
            authorization: authorization, signature: sign(key, authorization, address(facilitator))
        });
    }

    function pay(uint256 key, uint256 value, bytes32 nonce)
        internal
        view
        returns (IX402Facilitator.Payment memory)
    {
        return signPayment(key, authorize(vm.addr(key), value, nonce));
    }

    function sign(uint256 key, IX402Facilitator.Authorization memory authorization, address to)
        internal
        view
        returns (bytes memory)
    {
        return signFor(key, authorization, to, usdc.DOMAIN_SEPARATOR());
    }

    function signFor(
        uint256 key,
        IX402Facilitator.Authorization memory authorization,
        address to,
        bytes32 domainSeparator
    ) internal view returns (bytes memory) {
        bytes32 structHash = keccak256(
            abi.encode(
                usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(),
                authorization.from,
                to,
                authorization.value,
                authorization.validAfter,
                authorization.validBefore,
                authorization.nonce
            )
        );
        return signDigest(key, structHash, domainSeparator);
    }

    function signCancellation(uint256 key, address authorizer, bytes32 nonce)
        internal
        view
        returns (bytes memory)
    {
        return signDigest(
            key,
            keccak256(abi.encode(usdc.CANCEL_AUTHORIZATION_TYPEHASH(), authorizer, nonce)),
            usdc.DOMAIN_SEPARATOR()
        );
    }

    function signDigest(uint256 key, bytes32 structHash, bytes32 domainSeparator)
        internal
        pure
        returns (bytes memory)
    {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", domainSeparator, structHash)));
        return abi.encodePacked(r, s, v);
    }

    /// @dev A payment to a token that does not look at signatures.
    function unsigned(address from, uint256 value, bytes32 nonce)
        internal
        view
        returns (IX402Facilitator.Payment memory)
    {
        return IX402Facilitator.Payment({authorization: authorize(from, value, nonce), signature: ""});
    }

    function settle(IX402Facilitator.Payment memory payment, address recipient) internal {
        vm.prank(OPERATOR);
        facilitator.settle(address(usdc), payment.authorization, payment.signature, recipient);
    }

    function settleFails(IX402Facilitator.Payment memory payment, address recipient, bytes memory reason)
        internal
    {
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.settle(address(usdc), payment.authorization, payment.signature, recipient);
    }

    function settleBatch(address token, IX402Facilitator.Group[] memory groups)
        internal
        returns (Vm.Log[] memory)
    {
        vm.recordLogs();
        vm.prank(OPERATOR);
        facilitator.settleBatch(token, groups);
        return vm.getRecordedLogs();
    }

    /// @dev What the facilitator's events say about a payment. The last one counts: recorded logs also hold those
    /// of calls that were undone.
    function outcome(Vm.Log[] memory logs, IX402Facilitator.Payment memory payment)
        internal
        view
        returns (Outcome memory result)
    {
        for (uint256 i = 0; i < logs.length; ++i) {
            Vm.Log memory log = logs[i];
            if (
                log.emitter != address(facilitator) || log.topics.length != 4
                    || log.topics[2] != bytes32(uint256(uint160(payment.authorization.from)))
                    || log.topics[3] != payment.authorization.nonce
            ) continue;
            delete result;
            if (log.topics[0] == IX402Facilitator.Settled.selector) {
                result.settled = true;
                (result.recipient, result.value) = abi.decode(log.data, (address, uint256));
            } else if (log.topics[0] == IX402Facilitator.SettlementFailed.selector) {
                result.failed = true;
                result.reason = abi.decode(log.data, (bytes));
            }
        }
    }

    function assertSettled(Vm.Log[] memory logs, IX402Facilitator.Payment memory payment, address recipient)
        internal
        view
    {
        Outcome memory result = outcome(logs, payment);
        assertTrue(result.settled, "settled");
        assertEq(result.recipient, recipient, "recipient of Settled");
        assertEq(result.value, payment.authorization.value, "value of Settled");
    }

    function assertFailed(Vm.Log[] memory logs, IX402Facilitator.Payment memory payment, bytes memory reason)
        internal
        view
    {
        Outcome memory result = outcome(logs, payment);
        assertTrue(result.failed, "reported as failed");
        assertEq(result.reason, reason, "reason of SettlementFailed");
    }

    /// @dev Submits the payment straight to the token, as anybody who sees it can.
    function submitDirectly(IX402Facilitator.Payment memory payment) internal {
        usdc.transferWithAuthorization(
            payment.authorization.from,
            address(facilitator),
            payment.authorization.value,
            payment.authorization.validAfter,
            payment.authorization.validBefore,
            payment.authorization.nonce,
            payment.signature
        );
    }

    function onlyGroup(IX402Facilitator.Group memory only)
        internal
        pure
        returns (IX402Facilitator.Group[] memory groups)
    {
        groups = new IX402Facilitator.Group[](1);
        groups[0] = only;
    }

    function group(
        address recipient,
        IX402Facilitator.Payment memory first,
        IX402Facilitator.Payment memory second
    ) internal pure returns (IX402Facilitator.Group memory result) {
        result.recipient = recipient;
        result.payments = new IX402Facilitator.Payment[](2);
        result.payments[0] = first;
        result.payments[1] = second;
    }

    function group(address recipient, IX402Facilitator.Payment memory payment)
        internal
        pure
        returns (IX402Facilitator.Group memory result)
    {
        result.recipient = recipient;
        result.payments = new IX402Facilitator.Payment[](1);
        result.payments[0] = payment;
    }
}
