// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "./Vm.sol";

/// @title Base of all tests: cheatcodes and assertions
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    error NotEqual(string what, bytes32 actual, bytes32 expected);
    error NotEqualBytes(string what, bytes actual, bytes expected);
    error NotTrue(string what);

    function assertEq(uint256 actual, uint256 expected, string memory what) internal pure {
        if (actual != expected) revert NotEqual(what, bytes32(actual), bytes32(expected));
    }

    function assertEq(bytes32 actual, bytes32 expected, string memory what) internal pure {
        if (actual != expected) revert NotEqual(what, actual, expected);
    }

    function assertEq(address actual, address expected, string memory what) internal pure {
        assertEq(uint256(uint160(actual)), uint256(uint160(expected)), what);
    }

    function assertEq(bytes memory actual, bytes memory expected, string memory what) internal pure {
        if (keccak256(actual) != keccak256(expected)) revert NotEqualBytes(what, actual, expected);
    }

    function assertTrue(bool condition, string memory what) internal pure {
        if (!condition) revert NotTrue(what);
    }

    function assertFalse(bool condition, string memory what) internal pure {
        if (condition) revert NotTrue(what);
    }

    /// @dev The code that is published. Tests are compiled without the optimizer, which takes a third of the time; where
    /// coverage is measured, what they reach is, too.
    function codeOf(string memory name) internal view returns (bytes memory) {
        return vm.getCode(artifactOf(name));
    }

    /// @dev The same, as it stands on a chain.
    function deployedCodeOf(string memory name) internal view returns (bytes memory) {
        return vm.getDeployedCode(artifactOf(name));
    }

    function artifactOf(string memory name) private view returns (string memory) {
        string memory folder = vm.envOr("X402_ARTIFACTS", string("contracts-cache/generated/out/"));
        bool isOfThisBuild = bytes(folder).length == 0;
        return isOfThisBuild
            ? string.concat(name, ".sol:", name)
            : string.concat(folder, name, ".sol/", name, ".json");
    }

    function deployCode(string memory name, bytes memory arguments) internal returns (address deployed) {
        bytes memory code = bytes.concat(codeOf(name), arguments);
        assembly ("memory-safe") {
            deployed := create(0, add(code, 0x20), mload(code))
        }
        assertTrue(deployed != address(0), name);
    }

    /// @dev `x` itself when it lies in [low, high], else some number that does.
    function bound(uint256 x, uint256 low, uint256 high) internal pure returns (uint256) {
        if (x >= low && x <= high) return x;
        uint256 size = high - low + 1;
        return size == 0 ? x : low + x % size;
    }

    /// @dev What `require(false, message)` reverts with.
    function errorData(string memory message) internal pure returns (bytes memory) {
        return abi.encodeWithSignature("Error(string)", message);
    }
}
