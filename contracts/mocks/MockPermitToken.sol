// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

import {MockERC20} from "./MockERC20.sol";

/// @title An ERC-20 token with EIP-2612 permits, of version "1", and without authorizations
/// @dev OpenZeppelin's, whose immutables are of the address it is constructed at. So it must be constructed where it is
/// to stand; at another address its domain separator is computed anew, which only costs gas.
contract MockPermitToken is MockERC20, ERC20Permit {
    constructor(string memory name_, string memory symbol_, uint8 decimals_)
        MockERC20(name_, symbol_, decimals_)
        ERC20Permit(name_)
    {}

    function decimals() public view override(ERC20, MockERC20) returns (uint8) {
        return MockERC20.decimals();
    }
}
