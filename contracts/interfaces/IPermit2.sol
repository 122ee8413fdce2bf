// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title The part of Permit2 that x402 uses: transfers by signature
 * @notice At one address on every chain, `0x000000000022D473030F116dDEE9F6B43aC78BA3`. The owner of the tokens has approved
 * it on the token, and signs which spender may transfer how much of it.
 */
interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    /// @param permitted The token, and the most that may be transferred.
    /// @param nonce Any number that the owner has not used: see {nonceBitmap}.
    /// @param deadline Unix seconds; the last second at which the permit holds.
    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    /// @notice The same for several transfers, with one nonce.
    struct PermitBatchTransferFrom {
        TokenPermissions[] permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    /// @notice The owner cancelled the nonces of a word whose bits are set in the mask.
    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);

    error SignatureExpired(uint256 signatureDeadline);
    error InvalidAmount(uint256 maxAmount);
    error InvalidNonce();
    error InvalidSignatureLength();
    error InvalidSignature();
    error InvalidSigner();
    error InvalidContractSignature();
    error LengthMismatch();

    /// @notice Transfers what the owner signed, to `transferDetails.to`. The caller is the spender that the owner signed.
    /// @param witness Hash of what else the owner signed, whose type is `witnessTypeString`: from the name of the
    /// witness on, as it stands in the type of the whole.
    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external;

    /// @notice The same without a witness.
    function permitTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external;

    /// @notice Makes several transfers, none of those of amount 0. Each `transferDetails` belongs to the permission at its
    /// index.
    function permitTransferFrom(
        PermitBatchTransferFrom calldata permit,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes calldata signature
    ) external;

    /// @notice Cancels nonces of the caller.
    function invalidateUnorderedNonces(uint256 word, uint256 mask) external;

    /// @notice Which nonces of an owner are used or cancelled: bit `nonce % 256` of word `nonce / 256`. One for all tokens
    /// and all spenders.
    function nonceBitmap(address owner, uint256 word) external view returns (uint256);

    /// @notice The EIP-712 domain, hashed.
    // forge-lint: disable-next-line(mixed-case-function)
    function DOMAIN_SEPARATOR() external view returns (bytes32);
}
