// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title A contract wallet that accepts its owner's signatures when asked, and refuses them once that is mined
/// @notice Every transaction pays for its gas, and calls do not, so a wallet can tell a simulation from the real thing.
contract MockFickleWallet is IERC1271 {
    /// @dev In storage, not immutable: code and storage can be carried to any address.
    address public owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecover(digest, signature);
        bool valid = failure == ECDSA.RecoverError.NoError && signer == owner && tx.gasprice == 0;
        return valid ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}
