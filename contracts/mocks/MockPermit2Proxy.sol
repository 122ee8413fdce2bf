// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Eip2612Permit, IPermit2Proxy} from "../interfaces/IPermit2Proxies.sol";
import {MockPermit2Approval} from "./MockPermit2Approval.sol";

/// @title What the stand-ins for the two proxies of x402 share
abstract contract MockPermit2Proxy is IPermit2Proxy, MockPermit2Approval, ReentrancyGuard {
    /// @dev Of an approval that is too short, only the value is read before the check.
    function _approve(
        Eip2612Permit calldata permit2612,
        IPermit2.TokenPermissions calldata permitted,
        address owner
    ) internal {
        if (permit2612.value != permitted.amount) {
            revert Permit2612AmountMismatch();
        }
        (uint8 v, bytes32 r, bytes32 s) = (permit2612.v, permit2612.r, permit2612.s);
        _submitApproval(permitted.token, owner, permit2612.value, permit2612.deadline, v, r, s);
    }

    /// @dev The order of the checks decides which reason a payment with several faults gets.
    function _transfer(
        IPermit2.PermitTransferFrom calldata permit,
        IPermit2.SignatureTransferDetails memory transferDetails,
        address owner,
        uint256 validAfter,
        bytes32 witness,
        string memory witnessTypeString,
        bytes calldata signature
    ) internal {
        if (transferDetails.requestedAmount == 0) revert InvalidAmount();
        if (owner == address(0)) revert InvalidOwner();
        if (transferDetails.to == address(0)) revert InvalidDestination();
        if (block.timestamp < validAfter) revert PaymentTooEarly();
        PERMIT2.permitWitnessTransferFrom(
            permit, transferDetails, owner, witness, witnessTypeString, signature
        );
    }
}
