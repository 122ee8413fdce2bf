// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title Code for an EIP-7702 account to delegate to
/// @notice The account's own key goes on signing for it, although the account now has code.
contract Mock7702Delegate is IERC1271 {
    receive() external payable {}

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecover(digest, signature);
        bool valid = failure == ECDSA.RecoverError.NoError && signer == address(this);
        return valid ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}
