// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title Settles x402 payments that were signed for Permit2: schemes "exact" and "upto", for any ERC-20 token
 * @notice A payer signs a `PermitWitnessTransferFrom` whose spender is one of the two canonical proxies of x402. The
 * witness names where the value goes, as with EIP-3009 one of two: this contract, which sends it on to the recipient
 * within the same call, or the payee itself.
 *
 * A payment settles if exactly its amount arrives where the payer signed it to go, here or at the payee; else nothing of it
 * happens, and its nonce stays unused. So a token that keeps a fee of a transfer cannot be paid with, by either way; nor can
 * a payer pay himself directly, or a payee that moves what it receives on within the same call.
 *
 * Scheme "upto" lets this contract (`witness.facilitator`) take any amount up to the permitted one. Nothing on chain
 * bounds it further; that is why settling is for operators alone.
 */
interface IPermit2Settlement {
    /// @notice A payment as its payer signed it, with its signature.
    /// @param payer Owner of the tokens. Not a part of what is signed.
    /// @param permitted Amount of `TokenPermissions`, in the token's smallest unit.
    /// @param nonce Of Permit2's unordered nonces: used once per payer, whatever the token, the proxy and the amount.
    /// @param deadline Unix seconds; the last second at which the payment can settle.
    /// @param validAfter Unix seconds; the first second at which it can.
    /// @param amount What is settled: `permitted` with "exact", from 1 to `permitted` with "upto".
    /// @param approval Empty, or the payer's EIP-2612 permit for Permit2: `abi.encode(Eip2612Permit)`, whose value must be
    /// `permitted`. Where the token refuses it, the payment is tried all the same: somebody else may have submitted it.
    /// @param signature 65 bytes r, s, v (or 64, EIP-2098) for a plain account, anything the wallet's `isValidSignature`
    /// takes for an account with code.
    struct Permit2Payment {
        address payer;
        uint256 permitted;
        uint256 nonce;
        uint256 deadline;
        uint256 validAfter;
        uint256 amount;
        bytes approval;
        bytes signature;
    }

    /// @notice Payments that are settled together: in one transfer to the recipient, unless they go there at once.
    /// @param token The token of `TokenPermissions`.
    /// @param upto Whether they were signed for the proxy of scheme "upto", with this contract as `witness.facilitator`;
    /// otherwise for that of "exact".
    /// @param direct Whether `witness.to` is the recipient itself; otherwise it is this contract.
    struct Permit2Group {
        address token;
        bool upto;
        bool direct;
        address recipient;
        Permit2Payment[] payments;
    }

    /// @notice The payer's value went to the recipient, exactly `value` of it.
    event Permit2Settled(
        address indexed token, address indexed payer, uint256 indexed nonce, address recipient, uint256 value
    );

    /// @notice A payment of a batch was left out. Nothing of it moved; its nonce is as it was before.
    /// @param reason Revert data of the proxy, of Permit2 or the payer's wallet, or of this contract, as an ABI-encoded
    /// error; cut after MAX_REASON_LENGTH bytes.
    event Permit2SettlementFailed(
        address indexed token, address indexed payer, uint256 indexed nonce, bytes reason
    );

    /// @notice Value that a payment had brought here outside of a settlement went to its recipient.
    event Permit2Forwarded(
        address indexed token, address indexed payer, uint256 indexed nonce, address recipient, uint256 value
    );

    /**
     * @notice Moves the payments of a group: all, or none.
     * @dev For OPERATOR_ROLE, while not paused. Reverts with the reason of the proxy or of Permit2 when one of them refuses
     * (Permit2 says `TRANSFER_FROM_FAILED` for all that the token may refuse), and with {UnexpectedBalance} when another
     * amount arrived than `amount`. The proxy gets at most PULL_GAS for each payment, so that a simulation of this call
     * fails as a batch would.
     */
    function settlePermit2(Permit2Group calldata group) external;

    /**
     * @notice Moves the payments of many groups.
     * @dev For OPERATOR_ROLE, while not paused. A payment that {settlePermit2} would refuse is left out and reported by
     * {Permit2SettlementFailed}, and the others go on, also those of its group: when that cannot be settled as a whole, each
     * of its payments is tried by itself. Gas running out is never reported as a failed payment: it reverts the whole batch.
     *
     * A token whose `balanceOf`, or whose transfer to the recipient, burns all the gas it gets reverts the batch that it is in.
     * So payments of a token that is not trusted that far belong in a batch of their own.
     */
    function settlePermit2Batch(Permit2Group[] calldata groups) external;

    /**
     * @notice Pays out a payment of scheme "exact", signed to this contract, that somebody else submitted to the proxy.
     * @dev For RECOVERER_ROLE, while not paused. As `forwardReceived`, and with the same errors and the same limit: the
     * payer signed it, its nonce is used, and it was not paid out before. None of this proves that it brought anything here:
     * the nonce may have been cancelled, settled, or used for another payment, of any token and any spender. The caller
     * must have proven off chain that it did. No event of Permit2 or the proxy names the nonce.
     *
     * `amount` and `approval` are not looked at: an exact payment is of `permitted`.
     *
     * The key of `forwarded` is `keccak256(abi.encode(Permit2, payer, bytes32(nonce)))`. Nobody but this contract can submit
     * a payment of scheme "upto" whose facilitator it is.
     */
    function forwardReceivedWithPermit2(address token, Permit2Payment calldata payment, address recipient)
        external;
}
