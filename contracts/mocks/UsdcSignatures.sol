// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;
pragma abicoder v1;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/**
 * @title The signature rules of USDC
 * @notice Stricter, and with other revert strings, than OpenZeppelin's: exactly 65 bytes, low s, v of 27 or 28; an
 * account that has code is asked by ERC-1271 and never recovered.
 * @dev Called at an address of its own, as the original's `SignatureChecker` is: that costs a cold account.
 * `foundry.toml` says which address it is linked at.
 */
library UsdcSignatures {
    // Half of the order of secp256k1.
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    /// @notice Whether `signature` is the signer's, over `digest`. Reverts for what cannot be a signature of a plain
    /// account.
    function isValidSignatureNow(address signer, bytes32 digest, bytes memory signature)
        external
        view
        returns (bool)
    {
        if (signer.code.length == 0) return _recover(digest, signature) == signer;

        (bool success, bytes memory result) =
            signer.staticcall(abi.encodeWithSelector(IERC1271.isValidSignature.selector, digest, signature));
        return success && result.length >= 32
            && abi.decode(result, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }

    function _recover(bytes32 digest, bytes memory signature) private pure returns (address signer) {
        require(signature.length == 65, "ECRecover: invalid signature length");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        require(uint256(s) <= HALF_ORDER, "ECRecover: invalid signature 's' value");
        require(v == 27 || v == 28, "ECRecover: invalid signature 'v' value");
        signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "ECRecover: invalid signature");
    }
}
