// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title Calls the factory of a wallet as an account without any power
 * @dev Factory and calldata come from the payer. Made by the facilitator itself, the call could use what that may do and
 * holds. So each call is made by an account of its own: while it is being created, and it stays without code. It has no role,
 * no tokens and no allowance, since nobody knew its address before.
 */
contract WalletDeployer {
    /// @param gasLimit Most that the factory may use.
    /// @dev Whether the call succeeds is of no account: whether there is a wallet afterwards is. Its result is not copied.
    constructor(address factory, uint256 gasLimit, bytes memory data) {
        assembly ("memory-safe") {
            pop(call(gasLimit, factory, 0, add(data, 0x20), mload(data), 0, 0))
            return(0, 0)
        }
    }
}
