// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";

/**
 * @title A stand-in for Permit2 on test chains
 * @notice Behaves as the original does in what x402 uses of it: transfers by signature, and cancelled nonces. The same
 * checks in the same order, the same errors and events, the same storage slot. Its allowances, and batches with a
 * witness, are left out.
 * @dev No immutables and a domain separator computed from the live chain id and address, so that the code can be put at
 * any address of any chain. The original keeps the separator of the chain it was deployed on.
 */
contract MockPermit2 is IPermit2 {
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME_HASH = keccak256("Permit2");
    bytes32 private constant TOKEN_PERMISSIONS_TYPEHASH =
        keccak256("TokenPermissions(address token,uint256 amount)");
    bytes32 private constant TRANSFER_TYPEHASH = keccak256(
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );
    bytes32 private constant BATCH_TYPEHASH = keccak256(
        "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );
    string private constant TYPE_BEFORE_WITNESS =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";

    // All bits but the highest, in which EIP-2098 has v.
    bytes32 private constant S_MASK = bytes32(type(uint256).max >> 1);

    /// @inheritdoc IPermit2
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    /// @inheritdoc IPermit2
    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        bytes32 typeHash = keccak256(abi.encodePacked(TYPE_BEFORE_WITNESS, witnessTypeString));
        bytes memory fields = bytes.concat(_fields(typeHash, permit), witness);
        _transferPermitted(permit, transferDetails, owner, keccak256(fields), signature);
    }

    /// @inheritdoc IPermit2
    function permitTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external {
        bytes32 structHash = keccak256(_fields(TRANSFER_TYPEHASH, permit));
        _transferPermitted(permit, transferDetails, owner, structHash, signature);
    }

    /// @inheritdoc IPermit2
    function permitTransferFrom(
        PermitBatchTransferFrom calldata permit,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external {
        uint256 count = permit.permitted.length;
        _requireInTime(permit.deadline);
        if (count != transferDetails.length) revert LengthMismatch();
        _useNonce(owner, permit.nonce);
        bytes32[] memory hashes = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            hashes[i] = _hash(permit.permitted[i]);
        }
        bytes32 permitted = keccak256(abi.encodePacked(hashes));
        bytes memory fields = abi.encode(BATCH_TYPEHASH, permitted, msg.sender, permit.nonce, permit.deadline);
        _requireSignature(owner, keccak256(fields), signature);
        for (uint256 i = 0; i < count; ++i) {
            uint256 amount = transferDetails[i].requestedAmount;
            _requireWithin(amount, permit.permitted[i]);
            if (amount != 0) {
                _transferFrom(permit.permitted[i].token, owner, transferDetails[i].to, amount);
            }
        }
    }

    /// @inheritdoc IPermit2
    function invalidateUnorderedNonces(uint256 word, uint256 mask) external {
        nonceBitmap[msg.sender][word] |= mask;
        emit UnorderedNonceInvalidation(msg.sender, word, mask);
    }

    /// @inheritdoc IPermit2
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, block.chainid, address(this)));
    }

    function _transferPermitted(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 structHash,
        bytes calldata signature
    ) private {
        _requireInTime(permit.deadline);
        _requireWithin(transferDetails.requestedAmount, permit.permitted);
        _useNonce(owner, permit.nonce);
        _requireSignature(owner, structHash, signature);
        _transferFrom(permit.permitted.token, owner, transferDetails.to, transferDetails.requestedAmount);
    }

    function _requireInTime(uint256 deadline) private view {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
    }

    function _requireWithin(uint256 amount, TokenPermissions calldata permitted) private pure {
        if (amount > permitted.amount) revert InvalidAmount(permitted.amount);
    }

    function _useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << (nonce % 256);
        uint256 word = nonceBitmap[owner][nonce / 256];
        if (word & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][nonce / 256] = word | bit;
    }

    /// @dev As the original: the token's return value counts if there is one, and an address without code takes every
    /// call. Whatever the token's reason, this is the one that is given.
    function _transferFrom(address token, address from, address to, uint256 amount) private {
        (bool success, bytes memory result) =
            token.call(abi.encodeWithSignature("transferFrom(address,address,uint256)", from, to, amount));
        bool accepted = result.length == 0 || (result.length >= 32 && uint256(bytes32(result)) == 1);
        require(success && accepted, "TRANSFER_FROM_FAILED");
    }

    /// @dev What is signed, encoded, but for a witness. The caller is the spender.
    function _fields(bytes32 typeHash, PermitTransferFrom calldata permit)
        private
        view
        returns (bytes memory)
    {
        return abi.encode(typeHash, _hash(permit.permitted), msg.sender, permit.nonce, permit.deadline);
    }

    function _hash(TokenPermissions calldata permitted) private pure returns (bytes32) {
        return keccak256(abi.encode(TOKEN_PERMISSIONS_TYPEHASH, permitted));
    }

    /// @dev An account with code is asked, and never recovered. High s is taken, v of 0 and 1 is not.
    function _requireSignature(address owner, bytes32 structHash, bytes calldata signature) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
        if (owner.code.length != 0) {
            if (IERC1271(owner).isValidSignature(digest, signature) != IERC1271.isValidSignature.selector) {
                revert InvalidContractSignature();
            }
            return;
        }
        (uint8 v, bytes32 r, bytes32 s) = _split(signature);
        address signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert InvalidSignature();
        if (signer != owner) revert InvalidSigner();
    }

    function _split(bytes calldata signature) private pure returns (uint8 v, bytes32 r, bytes32 s) {
        if (signature.length != 64 && signature.length != 65) revert InvalidSignatureLength();
        r = bytes32(signature);
        s = bytes32(signature[32:]);
        if (signature.length == 65) return (uint8(signature[64]), r, s);
        return (27 + uint8(uint256(s) >> 255), r, s & S_MASK);
    }
}
