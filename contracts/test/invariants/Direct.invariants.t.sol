// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockERC20} from "../../mocks/MockERC20.sol";
import {Test} from "../utils/Test.sol";
import {DirectActors} from "./DirectActors.sol";

/// @title What holds of payments that were signed for Permit2 or straight to merchants, whatever anybody does
/// @dev That a payment is paid out once, and never more than was permitted, is asserted where the actors book it.
contract DirectInvariants is Test {
    bytes4[] private ACTIONS = [
        DirectActors.settleGroup.selector,
        bytes4(keccak256("settleBatch(uint256)")),
        bytes4(keccak256("transferBatch(uint256)")),
        DirectActors.submitDirectly.selector,
        DirectActors.cancel.selector,
        DirectActors.sendPlainly.selector,
        DirectActors.recover.selector,
        DirectActors.steal.selector
    ];

    DirectActors private actors;
    address private facilitator;

    function setUp() public {
        actors = new DirectActors();
        facilitator = actors.facilitatorAddress();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(actors);
    }

    function invariant_theBooksBalance() public view {
        for (uint256 i = 0; i < actors.TOKENS(); ++i) {
            MockERC20 token = actors.tokenAt(i);
            assertEq(token.balanceOf(facilitator), actors.stranded(token), "facilitator");
            for (uint256 j = 0; j < actors.RECIPIENTS(); ++j) {
                address recipient = actors.recipientAt(j);
                assertEq(token.balanceOf(recipient), actors.owed(token, recipient), "recipient");
            }
            for (uint256 j = 0; j < actors.PAYERS(); ++j) {
                address payer = actors.payerAt(j);
                assertEq(
                    token.balanceOf(payer), actors.INITIAL_BALANCE() - actors.spent(token, payer), "payer"
                );
            }
        }
    }

    function test_everyActorSucceedsNowAndThen() public {
        for (uint256 seed = 0; seed < 300; ++seed) {
            bytes4 action = ACTIONS[uint256(keccak256(abi.encode(seed))) % ACTIONS.length];
            (bool success,) = address(actors)
                .call(abi.encodeWithSelector(action, uint256(keccak256(abi.encode("seed", seed)))));
            assertTrue(success, "an action reverted");
        }
        string[5] memory actions =
            ["settleGroup", "settleBatch", "transferBatch", "submitDirectly", "recover"];
        for (uint256 i = 0; i < actions.length; ++i) {
            assertTrue(actors.successes(actions[i]) >= 5, actions[i]);
        }
        invariant_theBooksBalance();
    }
}
