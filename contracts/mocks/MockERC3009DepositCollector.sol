// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

import {IDepositCollector} from "../interfaces/IBatchSettlement.sol";
import {MockDepositCollector} from "./MockDepositCollector.sol";
import {MockUSDC} from "./MockUSDC.sol";

/// @title A stand-in for x402's collector of deposits by EIP-3009, `0x4020806089470a89826cB9fB1f4059150b550004`
/// @notice Behaves as the original. It is the payee of the authorization, whose nonce names the channel.
contract MockERC3009DepositCollector is MockDepositCollector {
    using SafeERC20 for IERC20;

    /// @inheritdoc IDepositCollector
    function collect(
        address payer,
        address token,
        uint256 amount,
        bytes32 channelId,
        bytes calldata collectorData
    ) external onlyBatchSettlement {
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(collectorData, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        MockUSDC(token)
            .receiveWithAuthorization(payer, address(this), amount, validAfter, validBefore, nonce, signature);
        IERC20(token).safeTransfer(x402BatchSettlement, amount);
    }
}
