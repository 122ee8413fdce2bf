// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

/// @title Tokens that do something else than they were asked to
/// @dev Funds of somebody else are stranded in the contract all the while; they must stay.
contract MisbehavingTokensTest is FacilitatorTest {
    uint256 private constant STRANDED = 500;

    MisbehavingToken private token;
    IX402Facilitator.Payment private payment;

    struct Scenario {
        Behaviour onPull;
        Behaviour onTransfer;
        /// What the payment is refused with; empty when it settles.
        bytes reason;
    }

    function setUp() public override {
        super.setUp();
        token = new MisbehavingToken();
        token.mint(payer, 1_000);
        token.mint(address(facilitator), STRANDED);
        payment = unsigned(payer, 100, "nonce");
    }

    function scenarios() private view returns (Scenario[] memory all) {
        bytes memory silent =
            abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, address(token));
        bytes memory bomb = new bytes(facilitator.MAX_REASON_LENGTH());
        bomb[31] = 0x01;
        all = new Scenario[](14);
        all[0] = Scenario(Behaviour.Correct, Behaviour.Correct, "");
        all[1] = Scenario(Behaviour.ReturnBomb, Behaviour.Correct, "");
        all[2] = Scenario(Behaviour.Correct, Behaviour.ReturnNothing, "");
        all[3] = Scenario(Behaviour.Correct, Behaviour.ReturnBomb, "");
        all[4] = Scenario(Behaviour.Nothing, Behaviour.Correct, unexpected(STRANDED + 100, STRANDED));
        all[5] = Scenario(Behaviour.Fee, Behaviour.Correct, unexpected(STRANDED + 100, STRANDED + 99));
        all[6] = Scenario(Behaviour.RevertSilently, Behaviour.Correct, silent);
        all[7] = Scenario(Behaviour.RevertBomb, Behaviour.Correct, bomb);
        all[8] = Scenario(Behaviour.Burn, Behaviour.Correct, silent);
        all[9] = Scenario(Behaviour.Correct, Behaviour.Nothing, unexpected(STRANDED, STRANDED + 100));
        all[10] = Scenario(Behaviour.Correct, Behaviour.Surcharge, unexpected(STRANDED, STRANDED - 1));
        all[11] = Scenario(Behaviour.Correct, Behaviour.RevertSilently, silent);
        all[12] = Scenario(Behaviour.Correct, Behaviour.ReturnFalse, silent);
        all[13] = Scenario(Behaviour.Correct, Behaviour.RevertBomb, bomb);
    }

    function test_settle() public {
        Scenario[] memory all = scenarios();
        for (uint256 i = 0; i < all.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            token.behave(all[i].onPull, all[i].onTransfer);
            vm.prank(OPERATOR);
            if (all[i].reason.length != 0) vm.expectRevert(all[i].reason);
            facilitator.settle(address(token), payment.authorization, payment.signature, RECIPIENT);
            assertPaid(all[i].reason.length == 0 ? 100 : 0);
            vm.revertToState(snapshot);
        }
    }

    function test_settleBatch() public {
        Scenario[] memory all = scenarios();
        for (uint256 i = 0; i < all.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            token.behave(all[i].onPull, all[i].onTransfer);
            Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, payment)));
            bool settles = all[i].reason.length == 0;
            if (settles) assertSettled(logs, payment, RECIPIENT);
            else assertFailed(logs, payment, all[i].reason);
            assertPaid(settles ? 100 : 0);
            vm.revertToState(snapshot);
        }
    }

    /// @dev PYUSD and its like return without a transfer when the authorization was used.
    function test_aTokenThatIsSilentAboutUsedAuthorizations() public {
        token.beSilentWhenUsed();
        token.transferWithAuthorization(payer, STRANGER, 100, 0, 0, "nonce", "");

        vm.prank(OPERATOR);
        vm.expectRevert(unexpected(STRANDED + 100, STRANDED));
        facilitator.settle(address(token), payment.authorization, payment.signature, RECIPIENT);

        IX402Facilitator.Payment memory good = unsigned(payer, 200, "good");
        Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, payment, good)));
        assertFailed(logs, payment, unexpected(STRANDED + 100, STRANDED));
        assertSettled(logs, good, RECIPIENT);
        assertPaid(200);
    }

    /// @dev In a batch the balance is first looked at once, after all pulls. What does not add up is found all the same.
    function test_aSilentTokenFailsItsOwnPaymentsOfABatchAlone() public {
        token.beSilentWhenUsed();
        token.transferWithAuthorization(payer, STRANGER, 100, 0, 0, "nonce", "");
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        groups[0] = group(RECIPIENT, unsigned(payer, 200, "first"));
        groups[1] = group(STRANGER, payment, unsigned(payer, 50, "second"));
        groups[2] = group(RECIPIENT, unsigned(payer, 25, "third"));
        Vm.Log[] memory logs = settleBatch(address(token), groups);
        assertSettled(logs, groups[0].payments[0], RECIPIENT);
        assertFailed(logs, payment, unexpected(STRANDED + 100, STRANDED));
        assertSettled(logs, groups[1].payments[1], STRANGER);
        assertSettled(logs, groups[2].payments[0], RECIPIENT);
        assertPaid(225);
        assertEq(token.balanceOf(STRANGER), 150, "stranger");
    }

    function test_noPaymentOfABatchIsMadeUpFromWhatIsStranded() public {
        Behaviour[3] memory behaviours = [Behaviour.Nothing, Behaviour.Fee, Behaviour.Surcharge];
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(RECIPIENT, payment, unsigned(payer, 100, "second"));
        groups[1] = group(STRANGER, unsigned(payer, 100, "third"));
        for (uint256 i = 0; i < behaviours.length; ++i) {
            bool onPull = behaviours[i] != Behaviour.Surcharge;
            token.behave(
                onPull ? behaviours[i] : Behaviour.Correct, onPull ? Behaviour.Correct : behaviours[i]
            );
            Vm.Log[] memory logs = settleBatch(address(token), groups);
            for (uint256 j = 0; j < groups.length; ++j) {
                for (uint256 k = 0; k < groups[j].payments.length; ++k) {
                    assertTrue(outcome(logs, groups[j].payments[k]).failed, "failed");
                }
            }
            assertPaid(0);
            assertEq(token.balanceOf(STRANGER), 0, "stranger");
        }
    }

    /// @dev The one thing that looking once does not tell: a pull that brings too much while another brings as much too
    /// little. What is paid then is what was brought; nothing else is touched.
    function test_aShortfallOfABatchIsPaidFromWhatItsOtherPullsBringTooMuch() public {
        token.beSilentWhenUsed();
        token.transferWithAuthorization(payer, STRANGER, 100, 0, 0, "nonce", "");
        token.behave(Behaviour.Call, Behaviour.Correct);
        token.callOut(address(token), abi.encodeCall(token.mint, (address(facilitator), 100)));
        IX402Facilitator.Payment memory generous = unsigned(payer, 50, "generous");
        Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, payment, generous)));
        assertSettled(logs, payment, RECIPIENT);
        assertSettled(logs, generous, RECIPIENT);
        assertPaid(150);
    }

    /// @dev The expected balance would overflow.
    function test_aSilentTokenAndAnImpossibleValue() public {
        token.behave(Behaviour.Nothing, Behaviour.Correct);
        IX402Facilitator.Payment memory impossible = unsigned(payer, type(uint256).max, "impossible");
        Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, impossible)));
        assertFailed(logs, impossible, unexpected(type(uint256).max, STRANDED));
    }

    /// @dev A pull that takes from the contract itself, and so from what others stranded.
    function test_aPullThatLowersTheBalance() public {
        IX402Facilitator.Payment memory own = unsigned(payer, 10, "own");
        token.behave(Behaviour.Call, Behaviour.Correct);
        // The token calls out before it moves: 50 are seized, 10 pulled.
        token.callOut(address(token), abi.encodeCall(token.seize, (address(facilitator), 50)));
        Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, own)));
        assertFailed(logs, own, unexpected(STRANDED + 10, STRANDED - 40));
        assertPaid(0);
    }

    function test_aTokenWithoutBalances() public {
        token.hideBalances();
        bytes memory reason =
            abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, address(token));
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.settle(address(token), payment.authorization, payment.signature, RECIPIENT);
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.settleBatch(address(token), onlyGroup(group(RECIPIENT, payment)));
    }

    function test_anAddressWithoutCode() public {
        vm.prank(OPERATOR);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, STRANGER));
        facilitator.settle(STRANGER, payment.authorization, payment.signature, RECIPIENT);
    }

    /// @dev With every role granted to the token, so that only the guard is left to stop it.
    function test_reentrantTokensGetNowhere() public {
        bytes32[2] memory roles = [facilitator.OPERATOR_ROLE(), facilitator.RECOVERER_ROLE()];
        for (uint256 i = 0; i < roles.length; ++i) {
            vm.prank(ADMIN);
            IAccessControl(address(facilitator)).grantRole(roles[i], address(token));
        }
        IX402Facilitator.Payment memory inner = unsigned(payer, 50, "inner");
        token.transferWithAuthorization(payer, address(facilitator), 50, 0, 0, "received", "");
        IX402Facilitator.Authorization memory received = authorize(payer, 50, "received");
        bytes memory signature = signFor(PAYER_KEY, received, address(facilitator), token.DOMAIN_SEPARATOR());
        bytes[3] memory calls = [
            abi.encodeCall(facilitator.settle, (address(token), inner.authorization, "", STRANGER)),
            abi.encodeCall(facilitator.settleBatch, (address(token), onlyGroup(group(STRANGER, inner)))),
            abi.encodeCall(facilitator.forwardReceived, (address(token), received, signature, STRANGER))
        ];
        bytes memory reason =
            abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        for (uint256 i = 0; i < calls.length; ++i) {
            token.callOut(address(facilitator), calls[i]);
            for (uint256 onTransfer = 0; onTransfer < 2; ++onTransfer) {
                token.behave(
                    onTransfer == 0 ? Behaviour.Call : Behaviour.Correct,
                    onTransfer == 0 ? Behaviour.Correct : Behaviour.Call
                );
                vm.prank(OPERATOR);
                vm.expectRevert(reason);
                facilitator.settle(address(token), payment.authorization, payment.signature, RECIPIENT);

                Vm.Log[] memory logs = settleBatch(address(token), onlyGroup(group(RECIPIENT, payment)));
                assertFailed(logs, payment, reason);
            }
            token.behave(Behaviour.Correct, Behaviour.Call);
            vm.prank(RECOVERER);
            vm.expectRevert(reason);
            facilitator.forwardReceived(address(token), received, signature, RECIPIENT);
        }
        assertEq(token.balanceOf(STRANGER), 0, "stranger");
    }

    function test_theGuardIsOpenAgainAfterwards() public {
        ContractOperator operator = new ContractOperator();
        bytes32 role = facilitator.OPERATOR_ROLE();
        vm.prank(ADMIN);
        IAccessControl(address(facilitator)).grantRole(role, address(operator));
        operator.settleTwice(facilitator, address(token), payment, unsigned(payer, 50, "second"), RECIPIENT);
        assertPaid(150);
    }

    function assertPaid(uint256 value) private view {
        assertEq(token.balanceOf(RECIPIENT), value, "recipient");
        assertEq(token.balanceOf(address(facilitator)), STRANDED, "stranded");
    }

    function unexpected(uint256 expected, uint256 actual) private view returns (bytes memory) {
        return
            abi.encodeWithSelector(
                IX402Facilitator.UnexpectedBalance.selector, address(token), expected, actual
            );
    }
}

/// @dev An operator that settles twice in one transaction.
contract ContractOperator {
    function settleTwice(
        IX402Facilitator facilitator,
        address token,
        IX402Facilitator.Payment calldata first,
        IX402Facilitator.Payment calldata second,
        address recipient
    ) external {
        facilitator.settle(token, first.authorization, first.signature, recipient);
        facilitator.settle(token, second.authorization, second.signature, recipient);
    }
}
