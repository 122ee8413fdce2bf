// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {Test} from "./Test.sol";

/// @title A facilitator, a token, and payers who can sign
abstract contract FacilitatorTest is Test {
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

    IX402Facilitator internal facilitator;
    MockUSDC internal usdc;
    address internal payer;

    function setUp() public virtual {
        vm.warp(NOW);
        facilitator = deployFacilitator();
        usdc = new MockUSDC("USD Coin", "USDC", "2", ISSUER);
        payer = vm.addr(PAYER_KEY);
        usdc.mint(payer, 1_000e6);
    }

    function deployFacilitator() internal returns (IX402Facilitator) {
        address[] memory operators = new address[](1);
        operators[0] = OPERATOR;
        return IX402Facilitator(
            deployCode(
                "X402Facilitator.sol:X402Facilitator",
                abi.encode(ADMIN_DELAY, ADMIN, operators, RECOVERER, PAUSER)
            )
        );
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
        return signDigest(
            key,
            keccak256(
                abi.encode(
                    usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(),
                    authorization.from,
                    to,
                    authorization.value,
                    authorization.validAfter,
                    authorization.validBefore,
                    authorization.nonce
                )
            )
        );
    }

    function signCancellation(uint256 key, address authorizer, bytes32 nonce)
        internal
        view
        returns (bytes memory)
    {
        return signDigest(key, keccak256(abi.encode(usdc.CANCEL_AUTHORIZATION_TYPEHASH(), authorizer, nonce)));
    }

    function signDigest(uint256 key, bytes32 structHash) internal view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), structHash)));
        return abi.encodePacked(r, s, v);
    }

    function settle(IX402Facilitator.Payment memory payment, address recipient) internal {
        vm.prank(OPERATOR);
        facilitator.settle(address(usdc), payment.authorization, payment.signature, recipient);
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
