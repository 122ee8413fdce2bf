// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// @title A contract wallet that burns all the gas it is given when asked about a signature
contract MockGasBurningWallet is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        // The opcode INVALID takes all the gas that is left, at once.
        assembly ("memory-safe") {
            invalid()
        }
    }
}
