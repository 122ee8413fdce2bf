// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A plain ERC-20 token without permits or authorizations, of which anyone may {mint}
contract MockERC20 is ERC20 {
    /// @dev In storage, not immutable: code and storage can be carried to any address.
    uint8 private _decimals;

    constructor(string memory name_, string memory symbol_, uint8 decimals_) ERC20(name_, symbol_) {
        _decimals = decimals_;
    }

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }

    function decimals() public view virtual override returns (uint8) {
        return _decimals;
    }
}
