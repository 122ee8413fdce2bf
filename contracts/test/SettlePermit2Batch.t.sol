// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {IPermit2Approval} from "../interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {ChargingToken} from "./utils/ChargingToken.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Permit2Fixture} from "./utils/Permit2Fixture.sol";
import {Vm} from "./utils/Vm.sol";

interface IPermit2BatchFrame {
    function settlePermit2Group(IPermit2Settlement.Permit2Group calldata group) external;
}

/// @title Batches of payments that were signed for Permit2: the failure of one is its own
contract SettlePermit2BatchTest is Permit2Fixture {
    uint256 private constant STRANDED = 500e6;
    uint256 private constant OTHER_KEY = 0xb0b;
    address private constant OTHER_RECIPIENT = address(uint160(uint256(keccak256("other recipient"))));
    bytes private usedReason = abi.encodeWithSelector(IPermit2.InvalidNonce.selector);
    bytes private insufficientReason = errorData("TRANSFER_FROM_FAILED");

    function setUp() public {
        deployWithPermit2();
        token.mint(address(facilitator), STRANDED);
        fundAndApprove(token, vm.addr(OTHER_KEY), 1_000e6);
    }

    function test_paysEachGroupByItsWay() public {
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](4);
        for (uint256 i = 0; i < 4; ++i) {
            groups[i] = groupOf(i & 1 == 1, i & 2 == 2);
            groups[i].recipient = recipientAt(i);
            groups[i] = adding(adding(groups[i], 1e6 << i, 2 * i), 1e6, 2 * i + 1);
        }
        Vm.Log[] memory logs = settlePermit2Batch(groups);
        for (uint256 i = 0; i < 4; ++i) {
            assertPermit2Settled(logs, groups[i], 0);
            assertPermit2Settled(logs, groups[i], 1);
            assertEq(token.balanceOf(recipientAt(i)), (1e6 << i) + 1e6, "recipient");
        }
        assertEq(token.balanceOf(payer), 1_000e6 - 19e6, "payer");
        assertStrandedStays();
    }

    /// @dev One transfer from the payers' proxy each, and one to the recipient.
    function test_paysARecipientOnce() public {
        IPermit2Settlement.Permit2Group memory group = adding(adding(groupOf(false, false), 1e6, 1), 2e6, 2);
        Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
        assertEq(logs.length, 2 * 3 + 1, "events");
        assertEq(logs[6].data, abi.encode(3e6), "transfer to the recipient");
    }

    function test_leavesOutWhatIsRefused() public {
        for (uint256 i = 0; i < 4; ++i) {
            uint256 snapshot = vm.snapshotState();
            IPermit2Settlement.Permit2Group memory group = groupOf(i & 1 == 1, i & 2 == 2);
            group = adding(adding(group, 1e6, 1), 5_000e6, 2);
            group = adding(adding(group, 1e6, 1), 2e6, 3);
            group.payments[3].signature[10] ^= 0x01;
            group = adding(group, 4e6, 4);
            Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
            // The first and the third are the same payment.
            assertPermit2Failed(logs, group, 0, usedReason);
            assertPermit2Failed(logs, group, 1, insufficientReason);
            assertTrue(permit2Outcome(logs, group.payments[3]).failed, "forged");
            assertPermit2Settled(logs, group, 4);
            assertEq(token.balanceOf(RECIPIENT), 5e6, "recipient");
            assertEq(token.balanceOf(payer), 995e6, "payer");
            assertStrandedStays();
            vm.revertToState(snapshot);
        }
    }

    /// @dev The token charges one payer a fee. His payment is undone; those beside it settle.
    function test_aPayerWhoIsChargedAFeeFailsAlone() public {
        ChargingToken charging = new ChargingToken(vm.addr(OTHER_KEY));
        token = charging;
        fundAndApprove(token, payer, 1_000e6);
        fundAndApprove(token, vm.addr(OTHER_KEY), 1_000e6);
        for (uint256 i = 0; i < 4; ++i) {
            uint256 snapshot = vm.snapshotState();
            IPermit2Settlement.Permit2Group memory group = groupOf(i & 1 == 1, i & 2 == 2);
            group = adding(group, 1e6, 1);
            group = adding(group, vm.addr(OTHER_KEY), OTHER_KEY, 10e6, 2);
            group = adding(group, 2e6, 3);
            Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
            assertPermit2Settled(logs, group, 0);
            // Direct, the first has arrived before. Through the contract nothing stays here.
            uint256 before = group.direct ? 1e6 : 0;
            assertPermit2Failed(logs, group, 1, unexpected(before + 10e6, before + 9.9e6));
            assertPermit2Settled(logs, group, 2);
            assertEq(token.balanceOf(RECIPIENT), 3e6, "recipient");
            assertEq(token.balanceOf(vm.addr(OTHER_KEY)), 1_000e6, "charged payer");
            assertEq(PERMIT2.nonceBitmap(vm.addr(OTHER_KEY), 0), 0, "nonce");
            vm.revertToState(snapshot);
        }
    }

    function test_aRecipientThatCannotBePaidFailsAlone() public {
        token = MockERC20(address(usdc));
        vm.prank(payer);
        usdc.approve(address(PERMIT2), type(uint256).max);
        vm.prank(ISSUER);
        usdc.blacklist(OTHER_RECIPIENT);
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](4);
        for (uint256 i = 0; i < 4; ++i) {
            groups[i] = groupOf(false, i & 2 == 2);
            if (i & 1 == 0) groups[i].recipient = OTHER_RECIPIENT;
            groups[i] = adding(adding(groups[i], 1e6, 2 * i), 2e6, 2 * i + 1);
        }
        Vm.Log[] memory logs = settlePermit2Batch(groups);
        for (uint256 i = 0; i < 2; ++i) {
            assertPermit2Failed(logs, groups[0], i, errorData("Blacklistable: account is blacklisted"));
            assertPermit2Settled(logs, groups[1], i);
            assertPermit2Failed(logs, groups[2], i, insufficientReason);
            assertPermit2Settled(logs, groups[3], i);
        }
        assertEq(usdc.balanceOf(RECIPIENT), 6e6, "recipient");
        assertEq(usdc.balanceOf(payer), 994e6, "payer");
        assertEq(PERMIT2.nonceBitmap(payer, 0), 0xcc, "nonces");
    }

    function test_reportsGroupsWithoutAPossibleRecipient() public {
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](3);
        address[3] memory recipients = [address(0), address(facilitator), RECIPIENT];
        for (uint256 i = 0; i < 3; ++i) {
            groups[i] = groupOf(false, false);
            groups[i].recipient = recipients[i];
            groups[i] = adding(groups[i], 1e6, i);
        }
        Vm.Log[] memory logs = settlePermit2Batch(groups);
        for (uint256 i = 0; i < 2; ++i) {
            assertPermit2Failed(
                logs,
                groups[i],
                0,
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i])
            );
        }
        assertPermit2Settled(logs, groups[2], 0);
    }

    /// @dev Whatever a token does: what it does not move exactly is undone, and the group beside it settles.
    function test_tokensThatMisbehaveFailAlone() public {
        MisbehavingToken bad = new MisbehavingToken();
        bad.mint(payer, 1_000e6);
        bad.mint(address(facilitator), STRANDED);
        Behaviour[10] memory onPull = [
            Behaviour.Nothing,
            Behaviour.Fee,
            Behaviour.RevertSilently,
            Behaviour.ReturnFalse,
            Behaviour.RevertBomb,
            Behaviour.Burn,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct
        ];
        Behaviour[10] memory onTransfer = [
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Correct,
            Behaviour.Nothing,
            Behaviour.Surcharge,
            Behaviour.RevertBomb,
            Behaviour.ReturnFalse
        ];
        for (uint256 i = 0; i < onPull.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            bad.behave(onPull[i], onTransfer[i]);
            IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](2);
            groups[0] = groupOf(false, false);
            groups[0].token = address(bad);
            groups[0] = adding(adding(groups[0], 1e6, 1), 2e6, 2);
            groups[1] = adding(groupOf(false, false), 4e6, 3);
            Vm.Log[] memory logs = settlePermit2Batch(groups);
            assertTrue(permit2Outcome(logs, groups[0].payments[0]).failed, "first");
            assertTrue(permit2Outcome(logs, groups[0].payments[1]).failed, "second");
            assertPermit2Settled(logs, groups[1], 0);
            assertEq(bad.balanceOf(payer), 1_000e6, "payer");
            assertEq(bad.balanceOf(address(facilitator)), STRANDED, "stranded");
            assertEq(bad.balanceOf(RECIPIENT), 0, "recipient");
            assertEq(PERMIT2.nonceBitmap(payer, 0), 1 << 3, "nonces");
            vm.revertToState(snapshot);
        }
    }

    /// @dev With every role granted to the token, so that only the guards are left to stop it.
    function test_reentrantTokensGetNowhere() public {
        MisbehavingToken bad = new MisbehavingToken();
        bad.mint(payer, 1_000e6);
        bytes32 role = facilitator.OPERATOR_ROLE();
        vm.prank(ADMIN);
        IAccessControl(address(facilitator)).grantRole(role, address(bad));
        IPermit2Settlement.Permit2Group memory inner = adding(groupOf(false, false), 1e6, 9);
        inner.recipient = STRANGER;
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 1e6, "nonce");
        bytes[5] memory calls = [
            abi.encodeCall(settlement.settlePermit2, (inner)),
            abi.encodeCall(settlement.settlePermit2Batch, (onlyPermit2Group(inner))),
            abi.encodeCall(
                facilitator.settle, (address(usdc), payment.authorization, payment.signature, STRANGER)
            ),
            abi.encodeCall(
                facilitator.deployAndSettle,
                (address(this), STRANGER, "", abi.encodeCall(settlement.settlePermit2, (inner)))
            ),
            abi.encodeCall(IPermit2BatchFrame.settlePermit2Group, (inner))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            for (uint256 onTransfer = 0; onTransfer < 2; ++onTransfer) {
                bad.callOut(address(facilitator), calls[i]);
                bad.behave(
                    onTransfer == 0 ? Behaviour.Call : Behaviour.Correct,
                    onTransfer == 0 ? Behaviour.Correct : Behaviour.Call
                );
                IPermit2Settlement.Permit2Group memory group = groupOf(false, false);
                group.token = address(bad);
                group = adding(group, 1e6, 1);
                vm.prank(OPERATOR);
                vm.expectRevert();
                settlement.settlePermit2(group);
                Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
                assertTrue(permit2Outcome(logs, group.payments[0]).failed, "failed");
            }
        }
        assertEq(token.balanceOf(STRANGER) + usdc.balanceOf(STRANGER), 0, "stranger");
    }

    function test_theFrameIsForTheContractItself() public {
        IPermit2Settlement.Permit2Group memory group = adding(groupOf(false, false), 1e6, 1);
        vm.prank(OPERATOR);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.OnlySelf.selector, OPERATOR));
        IPermit2BatchFrame(address(facilitator)).settlePermit2Group(group);
    }

    function test_takesEmptyBatchesAndGroups() public {
        settlePermit2Batch(new IPermit2Settlement.Permit2Group[](0));
        settlePermit2Batch(onlyPermit2Group(groupOf(true, true)));
        // There is nobody to report.
        assertEq(settlePermit2Batch(new IPermit2Settlement.Permit2Group[](1)).length, 0, "events");
    }

    /// @dev A payer who is refused each time does not keep the others from settling with their permits.
    function test_takesPermitsInBatches() public {
        MockPermitToken permits =
            MockPermitToken(deployCode("MockPermitToken", abi.encode("Permits", "PMT", uint8(6))));
        token = permits;
        permits.mint(payer, 100e6);
        permits.mint(vm.addr(OTHER_KEY), 100e6);
        IPermit2Settlement.Permit2Group memory group = adding(groupOf(false, false), 1e6, 1);
        group.payments[0].approval = signApproval(permits, PAYER_KEY, 2e6);
        group = adding(group, vm.addr(OTHER_KEY), OTHER_KEY, 4e6, 2);
        group.payments[1].approval = signApproval(permits, OTHER_KEY, 4e6);
        Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
        assertPermit2Failed(
            logs, group, 0, abi.encodeWithSelector(IPermit2Approval.Permit2612AmountMismatch.selector)
        );
        assertPermit2Settled(logs, group, 1);
    }

    function test_burnersInABatchCostTheirPullsAndNoMore() public {
        address wallet = deployCode("MockGasBurningWallet", "");
        fundAndApprove(token, wallet, 100e6);
        for (uint256 i = 0; i < 4; ++i) {
            uint256 snapshot = vm.snapshotState();
            IPermit2Settlement.Permit2Group memory group = groupOf(i & 1 == 1, i & 2 == 2);
            for (uint256 j = 0; j < 10; ++j) {
                group = j % 2 == 0 ? adding(group, wallet, PAYER_KEY, 1e6, j) : adding(group, 1e6, j);
            }
            uint256 gasBefore = gasleft();
            Vm.Log[] memory logs = settlePermit2Batch(onlyPermit2Group(group));
            assertTrue(gasBefore - gasleft() < 5 * facilitator.PULL_GAS() + 5 * 150_000, "gas used");
            for (uint256 j = 0; j < 10; ++j) {
                Outcome memory result = permit2Outcome(logs, group.payments[j]);
                assertTrue(j % 2 == 0 ? result.failed : result.settled, "outcome");
            }
            vm.revertToState(snapshot);
        }
    }

    /// @dev With every amount of gas a batch does all it should, or reverts for want of gas.
    function test_howeverLittleGasThereIsNoGoodPaymentIsReportedAsFailed() public {
        for (uint256 i = 0; i < 2; ++i) {
            IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](2);
            groups[0] = adding(adding(groupOf(false, i == 1), 1e6, 1), 1e6, 2);
            groups[1] = groupOf(true, i == 1);
            groups[1].recipient = OTHER_RECIPIENT;
            groups[1] = adding(groups[1], 1e6, 3);
            sweep(groups, 3e6);
        }
    }

    /// @dev The group of which one is charged a fee is tried again, payment by payment.
    function test_howeverLittleGasThereIsForASecondAttempt() public {
        token = new ChargingToken(vm.addr(OTHER_KEY));
        fundAndApprove(token, payer, 1_000e6);
        fundAndApprove(token, vm.addr(OTHER_KEY), 1_000e6);
        IPermit2Settlement.Permit2Group memory group = adding(groupOf(false, false), 1e6, 1);
        group = adding(group, vm.addr(OTHER_KEY), OTHER_KEY, 10e6, 2);
        group = adding(group, 1e6, 3);
        sweep(onlyPermit2Group(group), 2e6);
    }

    /// @dev Against a model: each payment is good, used, cancelled, forged or too large.
    function testFuzz_settlesExactlyTheGoodPayments(uint256 seed) public {
        uint256 count = 1 + seed % 4;
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 groupSeed = mix(seed, i);
            groups[i] = groupOf(groupSeed & 1 == 1, groupSeed & 2 == 2);
            groups[i].recipient = recipientAt(i);
            for (uint256 j = 0; j < groupSeed / 4 % 4; ++j) {
                groups[i] = addingSome(groups[i], mix(groupSeed, j));
            }
        }
        Vm.Log[] memory logs = settlePermit2Batch(groups);
        for (uint256 i = 0; i < count; ++i) {
            uint256 total = 0;
            for (uint256 j = 0; j < groups[i].payments.length; ++j) {
                IPermit2Settlement.Permit2Payment memory payment = groups[i].payments[j];
                bool good = payment.nonce % 4 == 0;
                Outcome memory result = permit2Outcome(logs, payment);
                assertTrue(good ? result.settled : result.failed, "outcome");
                if (good) total += payment.amount;
            }
            assertEq(token.balanceOf(recipientAt(i)), total, "recipient");
        }
        assertStrandedStays();
    }

    /// @dev `nonce % 4` says what is wrong with the payment, 0 for nothing.
    function addingSome(IPermit2Settlement.Permit2Group memory group, uint256 seed)
        private
        returns (IPermit2Settlement.Permit2Group memory)
    {
        uint256 key = 1 + seed % 1_000_000;
        uint256 amount = 1 + seed / 1_000_000 % 1e9;
        uint256 fault = seed % 4;
        fundAndApprove(token, vm.addr(key), amount);
        uint256 permitted = fault == 3 ? token.balanceOf(vm.addr(key)) + 1 : amount;
        group = adding(group, vm.addr(key), key, permitted, seed);
        IPermit2Settlement.Permit2Payment memory payment = group.payments[group.payments.length - 1];
        if (group.upto && fault == 0) payment.amount = 1 + seed / 7 % permitted;
        if (fault == 1) {
            vm.prank(vm.addr(key));
            PERMIT2.invalidateUnorderedNonces(seed >> 8, 1 << (seed & 0xff));
        }
        if (fault == 2) payment.signature[40] ^= 0x01;
        return group;
    }

    function sweep(IPermit2Settlement.Permit2Group[] memory groups, uint256 settled) private {
        bytes memory data = abi.encodeCall(settlement.settlePermit2Batch, (groups));
        uint256 before = token.balanceOf(payer);
        uint256 shortages = 0;
        bool success = false;
        for (uint256 amount = 20_000; !success; amount += 1_997) {
            uint256 snapshot = vm.snapshotState();
            vm.prank(OPERATOR);
            bytes memory result;
            (success, result) = address(facilitator).call{gas: amount}(data);
            assertEq(token.balanceOf(payer), success ? before - settled : before, "payer");
            if (!success && result.length != 0) {
                assertEq(
                    bytes32(bytes4(result)), bytes32(IX402Facilitator.InsufficientGas.selector), "reason"
                );
                ++shortages;
            }
            vm.revertToState(snapshot);
        }
        assertTrue(shortages > 0, "never short of gas");
    }

    function assertStrandedStays() private view {
        assertEq(token.balanceOf(address(facilitator)), STRANDED, "stranded");
    }

    function recipientAt(uint256 index) private pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encode("recipient", index)))));
    }

    function mix(uint256 seed, uint256 index) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, index)));
    }

    function unexpected(uint256 expected, uint256 actual) private view returns (bytes memory) {
        return
            abi.encodeWithSelector(
                IX402Facilitator.UnexpectedBalance.selector, address(token), expected, actual
            );
    }
}
