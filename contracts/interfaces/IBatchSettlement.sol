// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title Escrow of x402's scheme "batch-settlement", `0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003`
 * @notice A channel holds the deposits of one payer for one receiver in one token. The payer signs vouchers over a rising
 * total; the receiver claims what it has charged, and receives all claimed sums of a token in one transfer.
 */
interface IBatchSettlement {
    /// @notice The parties of a channel. Its EIP-712 digest is the channel's id.
    /// @param payerAuthorizer The key that signs vouchers; zero if the payer itself signs them, which may be a contract.
    /// @param receiverAuthorizer May claim and refund beside the receiver, and by signature.
    /// @param withdrawDelay Seconds between a payer's request to withdraw and the withdrawal.
    struct ChannelConfig {
        address payer;
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    /// @param signature Over the voucher.
    /// @param totalClaimed The channel's total after this claim, at most the voucher's.
    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    event ChannelCreated(bytes32 indexed channelId, ChannelConfig config);
    event ChannelClosed(bytes32 indexed channelId, ChannelConfig config);
    event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance);
    event Claimed(
        bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed
    );
    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);
    event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount);
    event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter);
    event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount);

    error InvalidChannel();
    error InvalidCollector();
    error InvalidRefundNonce();
    error InvalidSignature();
    error NotReceiverAuthorizer();
    error NotAuthorizedToClaim();
    error NotAuthorizedToRefund();
    error NotAuthorizedToFinalizeWithdraw();
    error ZeroDeposit();
    error ZeroRefund();
    error EmptyBatch();
    error DepositOverflow();
    error DepositCollectionFailed();
    error ClaimExceedsCeiling();
    error ClaimExceedsBalance();
    error NothingToWithdraw();
    error WithdrawalAlreadyPending();
    error WithdrawalNotPending();
    error WithdrawDelayNotElapsed();
    error WithdrawDelayOutOfRange();
    error WithdrawAmountExceedsAvailable();

    /// @notice Lets a collector bring the payer's tokens, and adds them to the channel. Anyone may call it.
    function deposit(
        ChannelConfig calldata config,
        uint128 amount,
        address collector,
        bytes calldata collectorData
    ) external;

    /// @notice Raises the claimed totals, of channels whose receiver or receiver's authorizer calls. No token moves. A total
    /// that the channel has reached already is passed over, whatever its signature.
    function claim(VoucherClaim[] calldata voucherClaims) external;

    /// @notice The same by anyone, with the signature of the one authorizer that all channels have.
    function claimWithSignature(VoucherClaim[] calldata voucherClaims, bytes calldata authorizerSignature)
        external;

    /// @notice Transfers all that was claimed for a receiver in a token. Does nothing if nothing is owed.
    function settle(address receiver, address token) external;

    /// @notice Returns unclaimed tokens to the payer, at most `amount`. The nonce rises even if there are none.
    function refund(ChannelConfig calldata config, uint128 amount) external;

    /// @notice The same by anyone, with the signature of the receiver's authorizer.
    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external;

    /// @notice Announces that the payer withdraws; claims and refunds go on until it does.
    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external;

    /// @notice Pays what was announced, and is still there, to the payer.
    function finalizeWithdraw(ChannelConfig calldata config) external;

    function getChannelId(ChannelConfig calldata config) external view returns (bytes32);
    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) external view returns (bytes32);
    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) external view returns (bytes32);
    function getClaimBatchDigest(VoucherClaim[] calldata voucherClaims) external view returns (bytes32);

    /// @notice `balance` is deposits less refunds and withdrawals: claims do not lower it.
    function channels(bytes32 channelId) external view returns (uint128 balance, uint128 totalClaimed);
    function pendingWithdrawals(bytes32 channelId) external view returns (uint128 amount, uint40 initiatedAt);
    function refundNonce(bytes32 channelId) external view returns (uint256);
    function receivers(address receiver, address token)
        external
        view
        returns (uint128 totalClaimed, uint128 totalSettled);
}

/// @title Brings the tokens of a deposit from the payer to the escrow, which alone may call it
interface IDepositCollector {
    error OnlyX402BatchSettlement();

    function collect(
        address payer,
        address token,
        uint256 amount,
        bytes32 channelId,
        bytes calldata collectorData
    ) external;

    function x402BatchSettlement() external view returns (address);
}
