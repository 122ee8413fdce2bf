// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Eip2612Permit, IPermit2Proxy} from "../interfaces/IPermit2Proxies.sol";

/// @title What the stand-ins for the two proxies of x402 share
/// @dev Permit2's address is a constant here, where the original takes it from its constructor: so the code can be put at
/// any address. It never reverts with `InvalidPermit2Address`.
abstract contract MockPermit2Proxy is IPermit2Proxy, ReentrancyGuard {
    /// @inheritdoc IPermit2Proxy
    IPermit2 public constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    /// @dev Submits the payer's approval of Permit2. Whoever has seen it may have submitted it before, so the token may
    /// refuse it.
    function _approve(
        Eip2612Permit calldata permit2612,
        IPermit2.TokenPermissions calldata permitted,
        address owner
    ) internal {
        if (permit2612.value != permitted.amount) {
            revert Permit2612AmountMismatch();
        }
        (uint8 v, bytes32 r, bytes32 s) = (permit2612.v, permit2612.r, permit2612.s);
        address token = permitted.token;
        try IERC20Permit(token)
            .permit(owner, address(PERMIT2), permit2612.value, permit2612.deadline, v, r, s) {}
        catch Error(string memory reason) {
            emit EIP2612PermitFailedWithReason(token, owner, reason);
        } catch Panic(uint256 errorCode) {
            emit EIP2612PermitFailedWithPanic(token, owner, errorCode);
        } catch (bytes memory data) {
            emit EIP2612PermitFailedWithData(token, owner, data);
        }
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
