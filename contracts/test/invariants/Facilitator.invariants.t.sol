// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {Test} from "../utils/Test.sol";
import {Actors} from "./Actors.sol";

/// @title What holds whatever anybody does, with an honest operator and an honest recoverer
/// @dev That a key is paid out once, and a cancelled one never, is asserted where the actors book a payout.
contract FacilitatorInvariants is Test {
    bytes4[] private ACTIONS = [
        Actors.settleNew.selector,
        Actors.settleSeen.selector,
        Actors.settleBatch.selector,
        Actors.cancel.selector,
        Actors.submitPaymentDirectly.selector,
        Actors.spendElsewhere.selector,
        Actors.sendPlainly.selector,
        Actors.recover.selector,
        Actors.rescue.selector,
        Actors.blacklist.selector,
        Actors.stealPayment.selector,
        Actors.wait.selector
    ];

    Actors private actors;
    // Asked once: these checks run after each of thousands of actions.
    MockUSDC[] private tokens;
    address[] private payers;
    address[] private recipients;
    address[] private bystanders;
    address private facilitator;
    uint256 private start;

    function setUp() public {
        actors = new Actors();
        start = block.timestamp;
        facilitator = actors.facilitatorAddress();
        bystanders = actors.bystanders();
        for (uint256 i = 0; i < actors.TOKENS(); ++i) {
            tokens.push(actors.tokenAt(i));
        }
        for (uint256 i = 0; i < actors.PAYERS(); ++i) {
            payers.push(actors.payerAt(i));
        }
        for (uint256 i = 0; i < actors.RECIPIENTS(); ++i) {
            recipients.push(actors.recipientAt(i));
        }
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(actors);
    }

    function invariant_theBooksBalance() public view {
        for (uint256 i = 0; i < tokens.length; ++i) {
            MockUSDC token = tokens[i];
            theFacilitatorHoldsWhatIsStranded(token);
            noMoreIsReleasedThanWasReceived(token);
            noMoreIsForwardedThanTheLimit(token);
            onlyNamedRecipientsGain(token);
            payersLoseWhatTheySigned(token);
        }
    }

    function test_everyActorSucceedsNowAndThen() public {
        for (uint256 seed = 0; seed < 400; ++seed) {
            bytes4 action = ACTIONS[uint256(keccak256(abi.encode(seed))) % ACTIONS.length];
            (bool success,) = address(actors)
                .call(abi.encodeWithSelector(action, uint256(keccak256(abi.encode("seed", seed)))));
            assertTrue(success, "an action reverted");
        }
        string[8] memory actions = [
            "settle",
            "settleBatch",
            "cancel",
            "submitPaymentDirectly",
            "spendElsewhere",
            "recover",
            "refuseByLimit",
            "rescue"
        ];
        for (uint256 i = 0; i < actions.length; ++i) {
            assertTrue(actors.successes(actions[i]) >= 5, actions[i]);
        }
        invariant_theBooksBalance();
    }

    function theFacilitatorHoldsWhatIsStranded(MockUSDC token) private view {
        assertEq(token.balanceOf(facilitator), actors.stranded(token), "facilitator");
    }

    function noMoreIsReleasedThanWasReceived(MockUSDC token) private view {
        assertTrue(actors.released(token) <= actors.received(token), "released");
    }

    /// @dev From the start: the limit, and what has come back of it since.
    function noMoreIsForwardedThanTheLimit(MockUSDC token) private view {
        uint256 limit = actors.FORWARD_LIMIT();
        uint256 back = limit * (block.timestamp - start) / 24 hours;
        assertTrue(actors.forwarded(token) <= limit + back, "forwarded");
    }

    function onlyNamedRecipientsGain(MockUSDC token) private view {
        for (uint256 i = 0; i < recipients.length; ++i) {
            assertEq(token.balanceOf(recipients[i]), actors.owed(token, recipients[i]), "recipient");
        }
        for (uint256 i = 0; i < bystanders.length; ++i) {
            assertEq(token.balanceOf(bystanders[i]), 0, "bystander");
        }
    }

    function payersLoseWhatTheySigned(MockUSDC token) private view {
        uint256 initialBalance = actors.INITIAL_BALANCE();
        for (uint256 i = 0; i < payers.length; ++i) {
            assertEq(token.balanceOf(payers[i]), initialBalance - actors.spent(token, payers[i]), "payer");
        }
    }
}
