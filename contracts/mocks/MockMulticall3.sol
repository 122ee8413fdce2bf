// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title A stand-in for Multicall3 on test chains, at its address `0xcA11bde05977b3631167028862bE2a173976CA11`
 * @notice Has what clients of x402 and viem call of it, with the same results and revert strings.
 */
contract MockMulticall3 {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    /// @notice Makes each call; reverts when one fails that may not.
    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            results[i] = _call(calls[i].target, calls[i].callData);
            require(results[i].success || calls[i].allowFailure, "Multicall3: call failed");
        }
    }

    /// @notice Makes each call; reverts when one fails, if all must succeed.
    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        external
        payable
        returns (Result[] memory results)
    {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            results[i] = _call(calls[i].target, calls[i].callData);
            require(results[i].success || !requireSuccess, "Multicall3: call failed");
        }
    }

    function getEthBalance(address account) external view returns (uint256 balance) {
        return account.balance;
    }

    function getCurrentBlockTimestamp() external view returns (uint256 timestamp) {
        return block.timestamp;
    }

    function _call(address target, bytes calldata data) private returns (Result memory result) {
        (result.success, result.returnData) = target.call(data);
    }
}
