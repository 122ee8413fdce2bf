// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Vm} from "./utils/Vm.sol";

interface IBatchFrame {
    function settleGroups(address token, IX402Facilitator.Group[] calldata groups) external;
}

contract SettleBatchTest is FacilitatorTest {
    address private constant OTHER_RECIPIENT = address(uint160(uint256(keccak256("other recipient"))));
    address private constant BLACKLISTED = address(uint160(uint256(keccak256("blacklisted"))));
    bytes private blacklistedReason = errorData("Blacklistable: account is blacklisted");
    bytes private usedReason = errorData("FiatTokenV2: authorization is used or canceled");

    function setUp() public override {
        super.setUp();
        vm.prank(ISSUER);
        usdc.blacklist(BLACKLISTED);
    }

    function test_paysEachRecipientTheSumOfItsGroup() public {
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"), pay(PAYER_KEY, 2e6, "2"));
        groups[1] = group(OTHER_RECIPIENT, pay(PAYER_KEY, 4e6, "3"));
        Vm.Log[] memory logs = settleBatch(address(usdc), groups);

        assertSettled(logs, groups[0].payments[0], RECIPIENT);
        assertSettled(logs, groups[0].payments[1], RECIPIENT);
        assertSettled(logs, groups[1].payments[0], OTHER_RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 3e6, "recipient");
        assertEq(usdc.balanceOf(OTHER_RECIPIENT), 4e6, "other recipient");
        assertEq(usdc.balanceOf(address(facilitator)), 0, "facilitator");
    }

    function test_paysTwoGroupsOfTheSameRecipient() public {
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"));
        groups[1] = group(RECIPIENT, pay(PAYER_KEY, 2e6, "2"));
        settleBatch(address(usdc), groups);
        assertEq(usdc.balanceOf(RECIPIENT), 3e6, "recipient");
    }

    function test_leavesOutAPaymentThatTheTokenRefuses() public {
        IX402Facilitator.Payment memory used = pay(PAYER_KEY, 1e6, "used");
        submitDirectly(used);
        IX402Facilitator.Payment memory good = pay(PAYER_KEY, 2e6, "good");
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(group(RECIPIENT, used, good)));

        assertFailed(logs, used, usedReason);
        assertSettled(logs, good, RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 2e6, "recipient");
        assertEq(usdc.balanceOf(address(facilitator)), 1e6, "stranded");
    }

    function test_settlesThePaymentsOfABatchOnce() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 1e6, "nonce");
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(RECIPIENT, payment);
        groups[1] = group(OTHER_RECIPIENT, payment);
        Vm.Log[] memory logs = settleBatch(address(usdc), groups);

        assertFailed(logs, payment, usedReason);
        assertEq(usdc.balanceOf(RECIPIENT), 1e6, "recipient");
        assertEq(usdc.balanceOf(OTHER_RECIPIENT), 0, "other recipient");
    }

    function test_undoesAGroupThatCannotBePaidAndSettlesTheOthers() public {
        IX402Facilitator.Payment memory used = pay(PAYER_KEY, 3e6, "used");
        submitDirectly(used);
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        groups[0] = group(RECIPIENT, used, pay(PAYER_KEY, 1e6, "1"));
        groups[1] = group(BLACKLISTED, pay(PAYER_KEY, 2e6, "2"), pay(PAYER_KEY, 4e6, "3"));
        groups[2] = group(OTHER_RECIPIENT, pay(PAYER_KEY, 8e6, "4"));
        Vm.Log[] memory logs = settleBatch(address(usdc), groups);

        assertFailed(logs, used, usedReason);
        assertSettled(logs, groups[0].payments[1], RECIPIENT);
        assertFailed(logs, groups[1].payments[0], blacklistedReason);
        assertFailed(logs, groups[1].payments[1], blacklistedReason);
        assertSettled(logs, groups[2].payments[0], OTHER_RECIPIENT);
        assertEq(usdc.balanceOf(payer), 1_000e6 - 12e6, "payer");
        assertEq(usdc.balanceOf(RECIPIENT), 1e6, "recipient");
        assertEq(usdc.balanceOf(OTHER_RECIPIENT), 8e6, "other recipient");
        assertEq(usdc.balanceOf(address(facilitator)), 3e6, "stranded");
        assertFalse(usdc.authorizationState(payer, "2"), "authorization of the undone group used");

        settle(groups[1].payments[0], RECIPIENT);
    }

    function test_reportsTheOnlyGroupWhenItCannotBePaid() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 1e6, "nonce");
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(group(BLACKLISTED, payment)));
        assertFailed(logs, payment, blacklistedReason);
        assertEq(usdc.balanceOf(payer), 1_000e6, "payer");
    }

    function test_reportsEveryGroupWhenNoneCanBePaid() public {
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(BLACKLISTED, pay(PAYER_KEY, 1e6, "1"));
        groups[1] = group(BLACKLISTED, pay(PAYER_KEY, 2e6, "2"));
        Vm.Log[] memory logs = settleBatch(address(usdc), groups);
        assertFailed(logs, groups[0].payments[0], blacklistedReason);
        assertFailed(logs, groups[1].payments[0], blacklistedReason);
        assertEq(usdc.balanceOf(payer), 1_000e6, "payer");
    }

    function test_reportsGroupsWithoutAPossibleRecipient() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        groups[0] = group(recipients[0], pay(PAYER_KEY, 1e6, "1"));
        groups[1] = group(recipients[1], pay(PAYER_KEY, 2e6, "2"));
        groups[2] = group(RECIPIENT, pay(PAYER_KEY, 4e6, "3"));
        Vm.Log[] memory logs = settleBatch(address(usdc), groups);
        for (uint256 i = 0; i < recipients.length; ++i) {
            assertFailed(
                logs,
                groups[i].payments[0],
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i])
            );
        }
        assertSettled(logs, groups[2].payments[0], RECIPIENT);
        assertEq(usdc.balanceOf(payer), 1_000e6 - 4e6, "payer");
    }

    function test_reportsEveryPaymentWhileTheTokenIsPaused() public {
        vm.prank(ISSUER);
        usdc.pause();
        IX402Facilitator.Group memory payments =
            group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"), pay(PAYER_KEY, 1e6, "2"));
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(payments));
        assertFailed(logs, payments.payments[0], errorData("Pausable: paused"));
        assertFailed(logs, payments.payments[1], errorData("Pausable: paused"));
    }

    function test_takesEmptyBatchesAndGroups() public {
        settleBatch(address(usdc), new IX402Facilitator.Group[](0));
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0].recipient = RECIPIENT;
        groups[1] = group(OTHER_RECIPIENT, pay(PAYER_KEY, 1e6, "nonce"));
        settleBatch(address(usdc), groups);
        assertEq(usdc.balanceOf(OTHER_RECIPIENT), 1e6, "other recipient");
    }

    function test_aGroupOfWhichNothingCameIsNotForwarded() public {
        IX402Facilitator.Payment memory used = pay(PAYER_KEY, 1e6, "used");
        submitDirectly(used);
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(group(BLACKLISTED, used)));
        assertEq(logs.length, 1, "events");
        assertFailed(logs, used, usedReason);
    }

    function test_takesPaymentsOfNothing() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 0, "nonce");
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(group(RECIPIENT, payment)));
        assertSettled(logs, payment, RECIPIENT);
        assertTrue(usdc.authorizationState(payer, "nonce"), "authorization used");
    }

    function test_leavesStrandedFundsWhereTheyAre() public {
        submitDirectly(pay(PAYER_KEY, 7e6, "stranded"));
        settleBatch(
            address(usdc), onlyGroup(group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"), pay(PAYER_KEY, 2e6, "2")))
        );
        assertEq(usdc.balanceOf(address(facilitator)), 7e6, "stranded");
        assertEq(usdc.balanceOf(RECIPIENT), 3e6, "recipient");
    }

    function test_refusesWhatIsNoToken() public {
        IX402Facilitator.Group[] memory groups = onlyGroup(group(RECIPIENT, pay(PAYER_KEY, 1e6, "1")));
        vm.prank(OPERATOR);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, STRANGER));
        facilitator.settleBatch(STRANGER, groups);
    }

    function test_settleGroupsIsForTheContractItself() public {
        IX402Facilitator.Group[] memory groups = onlyGroup(group(RECIPIENT, pay(PAYER_KEY, 1e6, "1")));
        vm.prank(OPERATOR);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.OnlySelf.selector, OPERATOR));
        IBatchFrame(address(facilitator)).settleGroups(address(usdc), groups);
    }

    /// @dev Against a model: each payment is good, used, cancelled, forged or too large; each recipient can be paid
    /// or not.
    function testFuzz_settlesExactlyTheGoodPaymentsOfPayableGroups(uint256 seed) public {
        uint256 count = 1 + seed % 6;
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 groupSeed = uint256(keccak256(abi.encode(seed, i)));
            address recipient = address(uint160(uint256(keccak256(abi.encode("recipient", i)))));
            groups[i].recipient = groupSeed % 4 == 0 ? BLACKLISTED : recipient;
            groups[i].payments = new IX402Facilitator.Payment[](groupSeed / 4 % 4);
            for (uint256 j = 0; j < groups[i].payments.length; ++j) {
                groups[i].payments[j] = somePayment(uint256(keccak256(abi.encode(seed, i, j))));
            }
        }
        uint256 stranded = usdc.balanceOf(address(facilitator));

        Vm.Log[] memory logs = settleBatch(address(usdc), groups);

        for (uint256 i = 0; i < count; ++i) {
            bool payable_ = groups[i].recipient != BLACKLISTED;
            uint256 total = 0;
            for (uint256 j = 0; j < groups[i].payments.length; ++j) {
                IX402Facilitator.Payment memory payment = groups[i].payments[j];
                bool good = payable_ && uint256(payment.authorization.nonce) % 5 == 0;
                Outcome memory result = outcome(logs, payment);
                assertTrue(good ? result.settled : result.failed, "outcome");
                if (good) total += payment.authorization.value;
            }
            assertEq(usdc.balanceOf(groups[i].recipient), total, "recipient");
        }
        assertEq(usdc.balanceOf(address(facilitator)), stranded, "stranded");
    }

    /// @dev `nonce % 5` says what is wrong with the payment, 0 for nothing.
    function somePayment(uint256 seed) private returns (IX402Facilitator.Payment memory payment) {
        uint256 key = 1 + seed % 1_000_000;
        uint256 value = 1 + seed / 1_000_000 % 1e9;
        usdc.mint(vm.addr(key), value);
        payment = pay(key, value, bytes32(seed));
        uint256 fault = seed % 5;
        if (fault == 1) submitDirectly(payment);
        if (fault == 2) {
            usdc.cancelAuthorization(
                vm.addr(key), bytes32(seed), signCancellation(key, vm.addr(key), bytes32(seed))
            );
        }
        if (fault == 3) payment.signature[40] ^= 0x01;
        if (fault == 4) payment = pay(key, usdc.balanceOf(vm.addr(key)) + 1e9, bytes32(seed));
    }
}
