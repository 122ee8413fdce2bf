// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Eip2612Permit, ExactWitness, IExactPermit2Proxy} from "../interfaces/IPermit2Proxies.sol";
import {MockPermit2Proxy} from "./MockPermit2Proxy.sol";

/// @title A stand-in for x402's proxy of scheme "exact" on test chains
/// @notice Behaves as the original: the same checks in the same order, the same errors and events.
contract MockExactPermit2Proxy is IExactPermit2Proxy, MockPermit2Proxy {
    bytes32 public constant WITNESS_TYPEHASH = keccak256("Witness(address to,uint256 validAfter)");
    string public constant WITNESS_TYPE_STRING =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)";

    /// @inheritdoc IExactPermit2Proxy
    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        ExactWitness calldata witness,
        bytes calldata signature
    ) external nonReentrant {
        _settle(permit, owner, witness, signature);
        emit Settled();
    }

    /// @inheritdoc IExactPermit2Proxy
    function settleWithPermit(
        Eip2612Permit calldata permit2612,
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        ExactWitness calldata witness,
        bytes calldata signature
    ) external nonReentrant {
        _approve(permit2612, permit.permitted, owner);
        _settle(permit, owner, witness, signature);
        emit SettledWithPermit();
    }

    function _settle(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        ExactWitness calldata witness,
        bytes calldata signature
    ) private {
        _transfer(
            permit,
            IPermit2.SignatureTransferDetails(witness.to, permit.permitted.amount),
            owner,
            witness.validAfter,
            keccak256(abi.encode(WITNESS_TYPEHASH, witness.to, witness.validAfter)),
            WITNESS_TYPE_STRING,
            signature
        );
    }
}
