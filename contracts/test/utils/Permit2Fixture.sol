// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../../interfaces/IPermit2.sol";
import {Eip2612Permit} from "../../interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "../../interfaces/IPermit2Settlement.sol";
import {MockERC20} from "../../mocks/MockERC20.sol";
import {MockPermitToken} from "../../mocks/MockPermitToken.sol";
import {FacilitatorFixture} from "./FacilitatorFixture.sol";
import {Permit2Deployment} from "./Permit2Deployment.sol";
import {Vm} from "./Vm.sol";

/// @title A facilitator beside Permit2 and the proxies, and payers who have approved Permit2 on a plain token
abstract contract Permit2Fixture is FacilitatorFixture, Permit2Deployment {
    bytes32 private constant EIP2612_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    IPermit2Settlement internal settlement;
    MockERC20 internal token;

    function deployWithPermit2() internal {
        deploy();
        deployOriginalPermit2();
        deployPermit2Proxies();
        settlement = IPermit2Settlement(address(facilitator));
        token = MockERC20(deployCode("MockERC20", abi.encode("Test", "TST", uint8(6))));
        fundAndApprove(token, payer, 1_000e6);
    }

    function fundAndApprove(MockERC20 asset, address account, uint256 value) internal {
        asset.mint(account, value);
        vm.prank(account);
        asset.approve(address(PERMIT2), type(uint256).max);
    }

    function groupOf(bool upto, bool direct)
        internal
        view
        returns (IPermit2Settlement.Permit2Group memory group)
    {
        group.token = address(token);
        group.upto = upto;
        group.direct = direct;
        group.recipient = RECIPIENT;
    }

    /// @dev The group with one more payment of the payer.
    function adding(IPermit2Settlement.Permit2Group memory group, uint256 amount, uint256 nonce)
        internal
        view
        returns (IPermit2Settlement.Permit2Group memory)
    {
        return adding(group, payer, PAYER_KEY, amount, nonce);
    }

    function adding(
        IPermit2Settlement.Permit2Group memory group,
        address owner,
        uint256 key,
        uint256 amount,
        uint256 nonce
    ) internal view returns (IPermit2Settlement.Permit2Group memory) {
        IPermit2Settlement.Permit2Payment[] memory before = group.payments;
        group.payments = new IPermit2Settlement.Permit2Payment[](before.length + 1);
        for (uint256 i = 0; i < before.length; ++i) {
            group.payments[i] = before[i];
        }
        group.payments[before.length] = IPermit2Settlement.Permit2Payment({
            payer: owner,
            permitted: amount,
            nonce: nonce,
            deadline: block.timestamp + 1 hours,
            validAfter: block.timestamp,
            amount: amount,
            approval: "",
            signature: ""
        });
        signLast(group, key);
        return group;
    }

    /// @dev Signs the last payment of the group as it stands there.
    function signLast(IPermit2Settlement.Permit2Group memory group, uint256 key) internal view {
        IPermit2Settlement.Permit2Payment memory payment = group.payments[group.payments.length - 1];
        payment.signature = signatureOver(key, digestOf(group, payment));
    }

    function digestOf(
        IPermit2Settlement.Permit2Group memory group,
        IPermit2Settlement.Permit2Payment memory payment
    ) internal view returns (bytes32) {
        address to = group.direct ? group.recipient : address(facilitator);
        IPermit2.PermitTransferFrom memory permit = IPermit2.PermitTransferFrom(
            IPermit2.TokenPermissions(group.token, payment.permitted), payment.nonce, payment.deadline
        );
        return group.upto
            ? permit2Digest(permit, UPTO_PROXY, uptoWitness(to, address(facilitator), payment.validAfter))
            : permit2Digest(permit, EXACT_PROXY, exactWitness(to, payment.validAfter));
    }

    /// @dev The payer's EIP-2612 permit for Permit2, of the token's next nonce.
    function signApproval(MockPermitToken asset, uint256 key, uint256 value)
        internal
        view
        returns (bytes memory)
    {
        address owner = vm.addr(key);
        uint256 deadline = block.timestamp + 1 hours;
        bytes32 structHash =
            keccak256(abi.encode(EIP2612_TYPEHASH, owner, PERMIT2, value, asset.nonces(owner), deadline));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", asset.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encode(Eip2612Permit(value, deadline, r, s, v));
    }

    /// @dev Submits the first payment of a group straight to the proxy, as anybody who sees it can.
    function submitToProxy(IPermit2Settlement.Permit2Group memory group) internal {
        IPermit2Settlement.Permit2Payment memory payment = group.payments[0];
        vm.prank(STRANGER);
        (bool success, bytes memory result) = address(EXACT_PROXY)
            .call(
                abi.encodeWithSelector(
                    EXACT_PROXY.settle.selector,
                    group.token,
                    payment.permitted,
                    payment.nonce,
                    payment.deadline,
                    payment.payer,
                    group.direct ? group.recipient : address(facilitator),
                    payment.validAfter,
                    payment.signature
                )
            );
        if (!success) revert NotEqualBytes("submitted", result, "");
    }

    function settlePermit2(IPermit2Settlement.Permit2Group memory group) internal {
        vm.prank(OPERATOR);
        settlement.settlePermit2(group);
    }

    function settlePermit2Fails(IPermit2Settlement.Permit2Group memory group, bytes memory reason) internal {
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        settlement.settlePermit2(group);
    }

    function settlePermit2Batch(IPermit2Settlement.Permit2Group[] memory groups)
        internal
        returns (Vm.Log[] memory)
    {
        vm.recordLogs();
        vm.prank(OPERATOR);
        settlement.settlePermit2Batch(groups);
        return vm.getRecordedLogs();
    }

    function onlyPermit2Group(IPermit2Settlement.Permit2Group memory only)
        internal
        pure
        returns (IPermit2Settlement.Permit2Group[] memory groups)
    {
        groups = new IPermit2Settlement.Permit2Group[](1);
        groups[0] = only;
    }

    /// @dev What the facilitator's events say about a payment, the last one of them.
    function permit2Outcome(Vm.Log[] memory logs, IPermit2Settlement.Permit2Payment memory payment)
        internal
        view
        returns (Outcome memory result)
    {
        for (uint256 i = 0; i < logs.length; ++i) {
            Vm.Log memory log = logs[i];
            if (
                log.emitter != address(facilitator) || log.topics.length != 4
                    || log.topics[2] != bytes32(uint256(uint160(payment.payer)))
                    || log.topics[3] != bytes32(payment.nonce)
            ) continue;
            delete result;
            if (log.topics[0] == IPermit2Settlement.Permit2Settled.selector) {
                result.settled = true;
                (result.recipient, result.value) = abi.decode(log.data, (address, uint256));
            } else if (log.topics[0] == IPermit2Settlement.Permit2SettlementFailed.selector) {
                result.failed = true;
                result.reason = abi.decode(log.data, (bytes));
            }
        }
    }

    function assertPermit2Settled(
        Vm.Log[] memory logs,
        IPermit2Settlement.Permit2Group memory group,
        uint256 index
    ) internal view {
        Outcome memory result = permit2Outcome(logs, group.payments[index]);
        assertTrue(result.settled, "settled");
        assertEq(result.recipient, group.recipient, "recipient of Permit2Settled");
        assertEq(result.value, group.payments[index].amount, "value of Permit2Settled");
    }

    function assertPermit2Failed(
        Vm.Log[] memory logs,
        IPermit2Settlement.Permit2Group memory group,
        uint256 index,
        bytes memory reason
    ) internal view {
        Outcome memory result = permit2Outcome(logs, group.payments[index]);
        assertTrue(result.failed, "reported as failed");
        assertEq(result.reason, reason, "reason of Permit2SettlementFailed");
    }
}
