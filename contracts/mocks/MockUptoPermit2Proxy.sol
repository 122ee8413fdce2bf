// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Eip2612Permit, IUptoPermit2Proxy, UptoWitness} from "../interfaces/IPermit2Proxies.sol";
import {MockPermit2Proxy} from "./MockPermit2Proxy.sol";

/// @title A stand-in for x402's proxy of scheme "upto" on test chains
/// @notice Behaves as the original: the same checks in the same order, the same errors and events.
contract MockUptoPermit2Proxy is IUptoPermit2Proxy, MockPermit2Proxy {
    bytes32 public constant WITNESS_TYPEHASH =
        keccak256("Witness(address to,address facilitator,uint256 validAfter)");
    string public constant WITNESS_TYPE_STRING =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,address facilitator,uint256 validAfter)";

    modifier onlyFacilitatorUpTo(uint256 permitted, uint256 amount, address facilitator) {
        if (amount > permitted) revert AmountExceedsPermitted();
        if (msg.sender != facilitator) revert UnauthorizedFacilitator();
        _;
    }

    /// @inheritdoc IUptoPermit2Proxy
    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        UptoWitness calldata witness,
        bytes calldata signature
    ) external nonReentrant onlyFacilitatorUpTo(permit.permitted.amount, amount, witness.facilitator) {
        _settle(permit, amount, owner, witness, signature);
        emit Settled();
    }

    /// @inheritdoc IUptoPermit2Proxy
    function settleWithPermit(
        Eip2612Permit calldata permit2612,
        IPermit2.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        UptoWitness calldata witness,
        bytes calldata signature
    ) external nonReentrant onlyFacilitatorUpTo(permit.permitted.amount, amount, witness.facilitator) {
        _approve(permit2612, permit.permitted, owner);
        _settle(permit, amount, owner, witness, signature);
        emit SettledWithPermit();
    }

    function _settle(
        IPermit2.PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        UptoWitness calldata witness,
        bytes calldata signature
    ) private {
        _transfer(
            permit,
            IPermit2.SignatureTransferDetails(witness.to, amount),
            owner,
            witness.validAfter,
            keccak256(abi.encode(WITNESS_TYPEHASH, witness.to, witness.facilitator, witness.validAfter)),
            WITNESS_TYPE_STRING,
            signature
        );
    }
}
