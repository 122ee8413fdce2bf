// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "../utils/Test.sol";
import {Thief} from "./Thief.sol";

/// @title What holds with a recoverer who steals
/// @dev That it claims only what was signed, and once, is asserted where it claims.
contract ThiefInvariants is Test {
    bytes4[] private ACTIONS = [
        Thief.sendPlainly.selector,
        bytes4(keccak256("submitDirectly(uint256)")),
        bytes4(keccak256("settle(uint256)")),
        Thief.cancel.selector,
        Thief.claim.selector,
        Thief.wait.selector
    ];

    Thief private thief;
    uint256 private start;

    function setUp() public {
        thief = new Thief();
        start = block.timestamp;
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(thief);
    }

    function invariant_theThiefTakesWhatIsStrandedWithinTheLimitAndNothingElse() public view {
        uint256 taken = thief.taken();
        uint256 limit = thief.FORWARD_LIMIT();
        assertEq(thief.ofThief(), taken, "thief");
        assertEq(thief.held(), thief.stranded() - taken, "facilitator");
        assertEq(thief.ofRecipient(), thief.settled(), "recipient");
        // From the start: the limit, and what has come back of it since.
        assertTrue(taken <= limit + limit * (block.timestamp - start) / 24 hours, "limit");
    }

    function test_theThiefSucceedsNowAndThen() public {
        for (uint256 seed = 0; seed < 200; ++seed) {
            bytes4 action = ACTIONS[uint256(keccak256(abi.encode(seed))) % ACTIONS.length];
            (bool success,) = address(thief)
                .call(abi.encodeWithSelector(action, uint256(keccak256(abi.encode("seed", seed)))));
            assertTrue(success, "an action reverted");
        }
        assertTrue(thief.claims() >= 5, "claims");
        assertTrue(thief.taken() < thief.stranded(), "the limit was reached");
        invariant_theThiefTakesWhatIsStrandedWithinTheLimitAndNothingElse();
    }
}
