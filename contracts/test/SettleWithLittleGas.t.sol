// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

/// @title However little gas there is, a good payment is never reported as failed
/// @dev A call gets 63/64 of the gas at most. With the right little amount the token's call would fail and its
/// caller still have enough to report the failure.
contract SettleWithLittleGasTest is FacilitatorTest {
    bytes4 private constant INSUFFICIENT_GAS = IX402Facilitator.InsufficientGas.selector;

    function test_settle() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 1e6, "nonce");
        sweep(
            address(usdc),
            abi.encodeCall(
                facilitator.settle, (address(usdc), payment.authorization, payment.signature, RECIPIENT)
            ),
            1
        );
    }

    function test_settleBatch_oneGroup() public {
        IX402Facilitator.Group memory payments =
            group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"), pay(PAYER_KEY, 1e6, "2"));
        sweep(address(usdc), abi.encodeCall(facilitator.settleBatch, (address(usdc), onlyGroup(payments))), 2);
    }

    function test_settleBatch_distinctRecipients() public {
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        for (uint256 i = 0; i < groups.length; ++i) {
            groups[i] = group(address(uint160(0xf00d00 + i)), pay(PAYER_KEY, 1e6, bytes32(i)));
        }
        sweep(address(usdc), abi.encodeCall(facilitator.settleBatch, (address(usdc), groups)), 3);
    }

    /// @dev The batch whose first attempt fails is settled group by group.
    function test_settleBatch_afterAGroupThatCannotBePaid() public {
        vm.prank(ISSUER);
        usdc.blacklist(STRANGER);
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        groups[0] = group(RECIPIENT, pay(PAYER_KEY, 1e6, "1"));
        groups[1] = group(STRANGER, pay(PAYER_KEY, 1e6, "2"));
        groups[2] = group(RECIPIENT, pay(PAYER_KEY, 1e6, "3"));
        sweep(address(usdc), abi.encodeCall(facilitator.settleBatch, (address(usdc), groups)), 2);
    }

    /// @dev What a pull leaves would do to fail the transfer to the recipient, and to tell of it.
    function test_settle_ofAnExpensiveToken() public {
        MisbehavingToken token = expensiveToken();
        sweep(
            address(token),
            abi.encodeCall(
                facilitator.settle, (address(token), authorize(payer, 1e6, "nonce"), "", RECIPIENT)
            ),
            1
        );
    }

    function test_settleBatch_ofAnExpensiveToken() public {
        MisbehavingToken token = expensiveToken();
        IX402Facilitator.Group memory payments =
            group(RECIPIENT, unsigned(payer, 1e6, "1"), unsigned(payer, 1e6, "2"));
        sweep(
            address(token), abi.encodeCall(facilitator.settleBatch, (address(token), onlyGroup(payments))), 2
        );
    }

    /// @dev A wallet that wants to see all the gas a pull can bring it sees it, or nobody does.
    function test_aPullGetsItsGasOrIsNotTried() public {
        ThirstyWallet wallet = new ThirstyWallet();
        usdc.mint(address(wallet), 1e6);
        IX402Facilitator.Payment memory payment = unsigned(address(wallet), 1e6, "nonce");
        wallet.wants(mostGasSeenBy(wallet, payment));
        bytes memory data =
            abi.encodeCall(facilitator.settleBatch, (address(usdc), onlyGroup(group(RECIPIENT, payment))));

        uint256 settled = 0;
        uint256 tried = 0;
        for (uint256 amount = 270_000; settled < 100; amount += 13) {
            uint256 snapshot = vm.snapshotState();
            vm.recordLogs();
            vm.prank(OPERATOR);
            (bool success,) = address(facilitator).call{gas: amount}(data);
            if (success) {
                assertTrue(outcome(vm.getRecordedLogs(), payment).settled, "settled");
                ++settled;
            }
            ++tried;
            vm.revertToState(snapshot);
        }
        assertTrue(tried > settled, "never short of gas");
    }

    function test_burnersInABatchCostTheirPullsAndNoMore() public {
        address wallet = deployCode("MockGasBurningWallet", "");
        usdc.mint(wallet, 100e6);
        IX402Facilitator.Group memory payments;
        payments.recipient = RECIPIENT;
        payments.payments = new IX402Facilitator.Payment[](10);
        for (uint256 i = 0; i < 10; ++i) {
            payments.payments[i] =
                signPayment(PAYER_KEY, authorize(i % 2 == 0 ? wallet : payer, 1e6, bytes32(i)));
        }
        uint256 gasBefore = gasleft();
        Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(payments));
        assertTrue(gasBefore - gasleft() < 5 * facilitator.PULL_GAS() + 5 * 150_000, "gas used");
        for (uint256 i = 0; i < 10; ++i) {
            Outcome memory result = outcome(logs, payments.payments[i]);
            assertTrue(i % 2 == 0 ? result.failed : result.settled, "outcome");
        }
    }

    function test_returnDataIsNotPaidForBeyondTheReason() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(payer, 10e6);
        token.behave(Behaviour.RevertBomb, Behaviour.Correct);
        IX402Facilitator.Payment memory payment = unsigned(payer, 1e6, "nonce");
        uint256 gasBefore = gasleft();
        Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, payment)));
        assertTrue(gasBefore - gasleft() < 120_000, "gas used");
        assertEq(outcome(logs, payment).reason.length, facilitator.MAX_REASON_LENGTH(), "bytes of the reason");
    }

    function expensiveToken() private returns (MisbehavingToken token) {
        token = new MisbehavingToken();
        token.mint(payer, 1_000e6);
        token.behave(Behaviour.Expensive, Behaviour.Expensive);
    }

    /// @dev The most gas that `wallet` can want to see and still have its payment settled.
    function mostGasSeenBy(ThirstyWallet wallet, IX402Facilitator.Payment memory payment)
        private
        returns (uint256 enough)
    {
        uint256 tooMuch = facilitator.PULL_GAS();
        while (tooMuch - enough > 1) {
            uint256 middle = (enough + tooMuch) / 2;
            wallet.wants(middle);
            uint256 snapshot = vm.snapshotState();
            Vm.Log[] memory logs = settleBatch(address(usdc), onlyGroup(group(RECIPIENT, payment)));
            bool settled = outcome(logs, payment).settled;
            vm.revertToState(snapshot);
            if (settled) enough = middle;
            else tooMuch = middle;
        }
    }

    /// @dev With every amount of gas the call either does all it should or reverts for want of gas.
    function sweep(address token, bytes memory data, uint256 settled) private {
        uint256 amount = 20_000;
        uint256 shortages = 0;
        bool success = false;
        while (!success) {
            uint256 snapshot = vm.snapshotState();
            vm.prank(OPERATOR);
            bytes memory result;
            (success, result) = address(facilitator).call{gas: amount}(data);
            if (success) {
                assertEq(IERC20(token).balanceOf(payer), 1_000e6 - settled * 1e6, "payer");
            } else {
                // Nothing at all is what a call that ran out of gas itself leaves behind.
                bool short = result.length != 0 && bytes4(result) == INSUFFICIENT_GAS;
                assertTrue(short || result.length == 0, "reverted for another reason than gas");
                if (short) ++shortages;
                assertEq(IERC20(token).balanceOf(payer), 1_000e6, "payer");
            }
            vm.revertToState(snapshot);
            // A step that divides nothing, so that the sweep lands everywhere in the code.
            amount += 997;
        }
        assertTrue(shortages > 0, "never short of gas");
    }
}

/// @dev Takes any signature, given the gas it wants.
contract ThirstyWallet {
    uint256 private _wanted;

    function wants(uint256 amount) external {
        _wanted = amount;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        return gasleft() < _wanted ? bytes4(0xffffffff) : bytes4(0x1626ba7e);
    }
}
