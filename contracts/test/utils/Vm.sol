// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The cheatcodes of Foundry that these tests use
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    function addr(uint256 privateKey) external pure returns (address);

    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);

    function warp(uint256 timestamp) external;

    function chainId(uint256 id) external;

    function prank(address sender) external;

    function startPrank(address sender) external;

    function stopPrank() external;

    function etch(address account, bytes calldata code) external;

    function getCode(string calldata artifact) external view returns (bytes memory);

    function getDeployedCode(string calldata artifact) external view returns (bytes memory);

    function envOr(string calldata name, string calldata otherwise) external view returns (string memory);

    function readFile(string calldata path) external view returns (string memory);

    function split(string calldata text, string calldata separator) external pure returns (string[] memory);

    function parseBytes(string calldata hexadecimal) external pure returns (bytes memory);

    function load(address account, bytes32 slot) external view returns (bytes32);

    function store(address account, bytes32 slot, bytes32 value) external;

    function assume(bool condition) external pure;

    function expectRevert() external;

    function expectRevert(bytes calldata revertData) external;

    function expectEmit(address emitter) external;

    function recordLogs() external;

    function getRecordedLogs() external returns (Log[] memory);

    function snapshotState() external returns (uint256 id);

    function revertToState(uint256 id) external returns (bool);

    function lastCallGas() external view returns (Gas memory);

    function snapshotValue(string calldata group, string calldata name, uint256 value) external;
}
