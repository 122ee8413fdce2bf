// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockERC20} from "./MockERC20.sol";

/// @title An ERC-20 token that keeps a hundredth of each transfer for itself
/// @notice The payer is charged what it signed, and the payee gets less: such a token cannot be paid with.
contract MockFeeToken is MockERC20 {
    constructor(string memory name_, string memory symbol_, uint8 decimals_)
        MockERC20(name_, symbol_, decimals_)
    {}

    function _update(address from, address to, uint256 value) internal override {
        bool isTransfer = from != address(0) && to != address(0);
        uint256 fee = isTransfer ? value / 100 : 0;
        super._update(from, to, value - fee);
        if (fee != 0) super._update(from, address(this), fee);
    }
}
