// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title The part of an EIP-3009 token that the facilitator calls
 * @notice The overload with `bytes signature` is the one of FiatTokenV2_2: it also takes signatures of contract
 * wallets (ERC-1271) and of accounts with delegated code (EIP-7702), which the overload of the EIP cannot carry.
 */
interface IAuthorizationToken {
    /// @notice Transfers `value` from `from` to `to` with the signature of `from`. Anyone may submit it.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;

    /// @notice Whether the authorization was used or cancelled; it does not tell which.
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);

    /// @notice The EIP-712 domain of the token's authorizations, hashed.
    // forge-lint: disable-next-line(mixed-case-function)
    function DOMAIN_SEPARATOR() external view returns (bytes32);
}
