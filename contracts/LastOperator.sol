// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

/**
 * @title The operator that was granted its role last, in the storage slot of Pausable's flag
 * @dev For that operator one cold read answers both "may it settle" and "is settling paused". Other operators take
 * two, and pay 2,100 gas more: 2 % of a payment.
 *
 * A base of its own because only then the two variables stand side by side; other bases with storage come after it.
 */
abstract contract LastOperator is Pausable {
    /// @dev Has OPERATOR_ROLE; or is zero, which no transaction comes from.
    address internal _lastOperator;
}
