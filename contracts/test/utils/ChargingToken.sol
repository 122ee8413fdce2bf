// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockERC20} from "../../mocks/MockERC20.sol";

/// @title A token that keeps a hundredth of what one account sends, and moves all else as it should
contract ChargingToken is MockERC20 {
    address private immutable CHARGED;

    constructor(address charged) MockERC20("Charging", "CHG", 6) {
        CHARGED = charged;
    }

    function _update(address from, address to, uint256 value) internal override {
        uint256 fee = from == CHARGED ? value / 100 : 0;
        super._update(from, to, value - fee);
        if (fee != 0) super._update(from, address(this), fee);
    }
}
