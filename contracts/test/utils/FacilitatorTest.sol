// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {FacilitatorFixture} from "./FacilitatorFixture.sol";

/// @title Base of the tests of the facilitator: everything is deployed anew for each
abstract contract FacilitatorTest is FacilitatorFixture {
    function setUp() public virtual {
        deploy();
    }
}
