// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDepositCollector} from "../interfaces/IBatchSettlement.sol";

/// @title What the stand-ins for the two collectors of deposits share
/// @dev The escrow's address is a constant here, where the originals take it from their constructors: so the code can be
/// put at any address. It never reverts with `InvalidX402BatchSettlementAddress`.
abstract contract MockDepositCollector is IDepositCollector {
    /// @inheritdoc IDepositCollector
    address public constant x402BatchSettlement = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    modifier onlyBatchSettlement() {
        if (msg.sender != x402BatchSettlement) revert OnlyX402BatchSettlement();
        _;
    }
}
