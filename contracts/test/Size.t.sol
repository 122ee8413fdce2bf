// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {FacilitatorTest} from "./utils/FacilitatorTest.sol";

/// @title The contract can be deployed on every chain: the one of these tests takes a larger one, too
contract SizeTest is FacilitatorTest {
    function test_theCodeLeavesRoomBelowTheLimit() public view {
        assertTrue(address(facilitator).code.length + 1_500 <= 24_576, "EIP-170");
    }

    function test_theCreationCodeIsWithinTheLimit() public view {
        assertTrue(codeOf("X402Facilitator").length <= 49_152, "EIP-3860");
    }
}
