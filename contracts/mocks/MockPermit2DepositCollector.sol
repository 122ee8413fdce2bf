// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDepositCollector} from "../interfaces/IBatchSettlement.sol";
import {IPermit2} from "../interfaces/IPermit2.sol";
import {MockDepositCollector} from "./MockDepositCollector.sol";
import {MockPermit2Approval} from "./MockPermit2Approval.sol";

/// @title A stand-in for x402's collector of deposits by Permit2, `0x4020425FAf3B746C082C2f942b4E5159887B0005`
/// @notice Behaves as the original. The witness of the permit names the channel.
contract MockPermit2DepositCollector is MockDepositCollector, MockPermit2Approval {
    bytes32 public constant DEPOSIT_WITNESS_TYPEHASH = keccak256("DepositWitness(bytes32 channelId)");
    string public constant DEPOSIT_WITNESS_TYPE_STRING =
        "DepositWitness witness)DepositWitness(bytes32 channelId)TokenPermissions(address token,uint256 amount)";

    /// @inheritdoc IDepositCollector
    function collect(
        address payer,
        address token,
        uint256 amount,
        bytes32 channelId,
        bytes calldata collectorData
    ) external onlyBatchSettlement {
        (uint256 nonce, uint256 deadline, bytes memory signature, bytes memory approval) =
            abi.decode(collectorData, (uint256, uint256, bytes, bytes));
        if (approval.length != 0) _approve(approval, token, amount, payer);
        PERMIT2.permitWitnessTransferFrom(
            IPermit2.PermitTransferFrom(IPermit2.TokenPermissions(token, amount), nonce, deadline),
            IPermit2.SignatureTransferDetails(x402BatchSettlement, amount),
            payer,
            keccak256(abi.encode(DEPOSIT_WITNESS_TYPEHASH, channelId)),
            DEPOSIT_WITNESS_TYPE_STRING,
            signature
        );
    }

    function _approve(bytes memory approval, address token, uint256 amount, address payer) private {
        (uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) =
            abi.decode(approval, (uint256, uint256, uint8, bytes32, bytes32));
        if (value != amount) revert Permit2612AmountMismatch();
        _submitApproval(token, payer, value, deadline, v, r, s);
    }
}
