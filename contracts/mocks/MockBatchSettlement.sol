// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

import {IBatchSettlement, IDepositCollector} from "../interfaces/IBatchSettlement.sol";

/**
 * @title A stand-in for the escrow of x402's scheme "batch-settlement" on test chains
 * @notice Behaves as the original: the same checks in the same order, the same errors and events, the same storage slots.
 * @dev No immutables and a domain computed from the live chain id and address, so that the code can be put at any address
 * of any chain.
 */
contract MockBatchSettlement is IBatchSettlement, IERC5267, Multicall, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    struct ChannelState {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct WithdrawalState {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct ReceiverState {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH = keccak256(
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
    );
    bytes32 public constant VOUCHER_TYPEHASH =
        keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 public constant REFUND_TYPEHASH =
        keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 public constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 public constant CLAIM_BATCH_TYPEHASH = keccak256(
        "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    string private constant NAME = "x402 Batch Settlement";
    string private constant VERSION = "1";

    uint40 public constant MIN_WITHDRAW_DELAY = 15 minutes;
    uint40 public constant MAX_WITHDRAW_DELAY = 30 days;

    // The original has texts of its domain in slots 0 and 1, which are empty.
    bytes32[2] private _unused;

    /// @inheritdoc IBatchSettlement
    mapping(bytes32 channelId => ChannelState) public channels;
    /// @inheritdoc IBatchSettlement
    mapping(bytes32 channelId => uint256) public refundNonce;
    /// @inheritdoc IBatchSettlement
    mapping(bytes32 channelId => WithdrawalState) public pendingWithdrawals;
    /// @inheritdoc IBatchSettlement
    mapping(address receiver => mapping(address token => ReceiverState)) public receivers;

    /// @inheritdoc IBatchSettlement
    function deposit(
        ChannelConfig calldata config,
        uint128 amount,
        address collector,
        bytes calldata collectorData
    ) external nonReentrant {
        if (
            config.payer == address(0) || config.receiver == address(0)
                || config.receiverAuthorizer == address(0) || config.token == address(0)
        ) revert InvalidChannel();
        if (config.withdrawDelay < MIN_WITHDRAW_DELAY || config.withdrawDelay > MAX_WITHDRAW_DELAY) {
            revert WithdrawDelayOutOfRange();
        }
        if (amount == 0) revert ZeroDeposit();
        if (collector == address(0)) revert InvalidCollector();
        bytes32 channelId = getChannelId(config);
        ChannelState storage channel = channels[channelId];
        if (amount > type(uint128).max - channel.balance) revert DepositOverflow();
        channel.balance += amount;
        _collect(config, amount, collector, channelId, collectorData);
        if (channel.balance == amount && channel.totalClaimed == 0) emit ChannelCreated(channelId, config);
        emit Deposited(channelId, msg.sender, amount, channel.balance);
    }

    /// @inheritdoc IBatchSettlement
    function claim(VoucherClaim[] calldata voucherClaims) external nonReentrant {
        if (voucherClaims.length == 0) revert EmptyBatch();
        for (uint256 i = 0; i < voucherClaims.length; ++i) {
            ChannelConfig calldata config = voucherClaims[i].voucher.channel;
            if (msg.sender != config.receiver && msg.sender != config.receiverAuthorizer) {
                revert NotAuthorizedToClaim();
            }
            _claim(voucherClaims[i]);
        }
    }

    /// @inheritdoc IBatchSettlement
    function claimWithSignature(VoucherClaim[] calldata voucherClaims, bytes calldata authorizerSignature)
        external
        nonReentrant
    {
        if (voucherClaims.length == 0) revert EmptyBatch();
        address authorizer = voucherClaims[0].voucher.channel.receiverAuthorizer;
        _requireSignature(authorizer, getClaimBatchDigest(voucherClaims), authorizerSignature);
        for (uint256 i = 0; i < voucherClaims.length; ++i) {
            if (voucherClaims[i].voucher.channel.receiverAuthorizer != authorizer) {
                revert NotReceiverAuthorizer();
            }
            _claim(voucherClaims[i]);
        }
    }

    /// @inheritdoc IBatchSettlement
    function settle(address receiver, address token) external nonReentrant {
        ReceiverState storage state = receivers[receiver][token];
        uint128 owed = state.totalClaimed - state.totalSettled;
        if (owed == 0) return;
        state.totalSettled = state.totalClaimed;
        IERC20(token).safeTransfer(receiver, owed);
        emit Settled(receiver, token, msg.sender, owed);
    }

    /// @inheritdoc IBatchSettlement
    function refund(ChannelConfig calldata config, uint128 amount) external nonReentrant {
        if (msg.sender != config.receiver && msg.sender != config.receiverAuthorizer) {
            revert NotAuthorizedToRefund();
        }
        _refund(getChannelId(config), config, amount);
    }

    /// @inheritdoc IBatchSettlement
    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external nonReentrant {
        bytes32 channelId = getChannelId(config);
        if (nonce != refundNonce[channelId]) revert InvalidRefundNonce();
        _requireSignature(
            config.receiverAuthorizer, getRefundDigest(channelId, nonce, amount), receiverAuthorizerSignature
        );
        _refund(channelId, config, amount);
    }

    /// @inheritdoc IBatchSettlement
    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external nonReentrant {
        if (!_isPayers(config)) revert InvalidChannel();
        if (amount == 0) revert NothingToWithdraw();
        bytes32 channelId = getChannelId(config);
        if (pendingWithdrawals[channelId].initiatedAt != 0) revert WithdrawalAlreadyPending();
        if (amount > _free(channels[channelId])) revert WithdrawAmountExceedsAvailable();
        uint40 now_ = uint40(block.timestamp);
        pendingWithdrawals[channelId] = WithdrawalState(amount, now_);
        emit WithdrawInitiated(channelId, amount, now_ + config.withdrawDelay);
    }

    /// @inheritdoc IBatchSettlement
    function finalizeWithdraw(ChannelConfig calldata config) external nonReentrant {
        if (!_isPayers(config)) revert NotAuthorizedToFinalizeWithdraw();
        bytes32 channelId = getChannelId(config);
        WithdrawalState memory pending = pendingWithdrawals[channelId];
        if (pending.initiatedAt == 0) revert WithdrawalNotPending();
        if (block.timestamp < uint256(pending.initiatedAt) + config.withdrawDelay) {
            revert WithdrawDelayNotElapsed();
        }
        delete pendingWithdrawals[channelId];
        uint128 amount = _takeFree(channelId, pending.amount);
        emit WithdrawFinalized(channelId, msg.sender, amount);
        _payBack(channelId, config, amount);
    }

    /// @inheritdoc IERC5267
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (0x0f, NAME, VERSION, block.chainid, address(this), salt, extensions);
    }

    /// @inheritdoc IBatchSettlement
    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(CHANNEL_CONFIG_TYPEHASH, config)));
    }

    /// @inheritdoc IBatchSettlement
    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount)));
    }

    /// @inheritdoc IBatchSettlement
    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return _digest(keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    /// @inheritdoc IBatchSettlement
    function getClaimBatchDigest(VoucherClaim[] calldata voucherClaims) public view returns (bytes32) {
        bytes32[] memory entries = new bytes32[](voucherClaims.length);
        for (uint256 i = 0; i < voucherClaims.length; ++i) {
            Voucher calldata voucher = voucherClaims[i].voucher;
            entries[i] = keccak256(
                abi.encode(
                    CLAIM_ENTRY_TYPEHASH,
                    getChannelId(voucher.channel),
                    voucher.maxClaimableAmount,
                    voucherClaims[i].totalClaimed
                )
            );
        }
        return _digest(keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(abi.encodePacked(entries)))));
    }

    /// @dev What arrives must be the whole amount: tokens that charge for transfers are refused here.
    function _collect(
        ChannelConfig calldata config,
        uint128 amount,
        address collector,
        bytes32 channelId,
        bytes calldata collectorData
    ) private {
        IERC20 token = IERC20(config.token);
        uint256 balance = token.balanceOf(address(this));
        IDepositCollector(collector).collect(config.payer, config.token, amount, channelId, collectorData);
        if (token.balanceOf(address(this)) != balance + amount) revert DepositCollectionFailed();
    }

    /// @dev A total that was reached before is passed over before its signature is looked at.
    function _claim(VoucherClaim calldata row) private {
        Voucher calldata voucher = row.voucher;
        ChannelConfig calldata config = voucher.channel;
        bytes32 channelId = getChannelId(config);
        ChannelState storage channel = channels[channelId];
        if (row.totalClaimed <= channel.totalClaimed) return;
        if (row.totalClaimed > voucher.maxClaimableAmount) revert ClaimExceedsCeiling();
        if (row.totalClaimed > channel.balance) revert ClaimExceedsBalance();
        bytes32 digest = getVoucherDigest(channelId, voucher.maxClaimableAmount);
        if (config.payerAuthorizer == address(0)) {
            _requireSignature(config.payer, digest, row.signature);
        } else if (ECDSA.recoverCalldata(digest, row.signature) != config.payerAuthorizer) {
            revert InvalidSignature();
        }
        uint128 amount = row.totalClaimed - channel.totalClaimed;
        channel.totalClaimed = row.totalClaimed;
        receivers[config.receiver][config.token].totalClaimed += amount;
        emit Claimed(channelId, msg.sender, amount, row.totalClaimed);
    }

    /// @dev A withdrawal that waits becomes smaller by what is refunded.
    function _refund(bytes32 channelId, ChannelConfig calldata config, uint128 amount) private {
        if (amount == 0) revert ZeroRefund();
        ++refundNonce[channelId];
        amount = _takeFree(channelId, amount);
        if (amount == 0) return;
        WithdrawalState storage pending = pendingWithdrawals[channelId];
        if (pending.amount <= amount) delete pendingWithdrawals[channelId];
        else pending.amount -= amount;
        emit Refunded(channelId, msg.sender, amount);
        _payBack(channelId, config, amount);
    }

    /// @dev Takes out of a channel what is unclaimed, at most `amount`.
    function _takeFree(bytes32 channelId, uint128 amount) private returns (uint128 taken) {
        ChannelState storage channel = channels[channelId];
        uint128 free = _free(channel);
        taken = amount < free ? amount : free;
        channel.balance -= taken;
    }

    function _payBack(bytes32 channelId, ChannelConfig calldata config, uint128 amount) private {
        ChannelState storage channel = channels[channelId];
        if (channel.balance == 0 && channel.totalClaimed == 0) emit ChannelClosed(channelId, config);
        if (amount != 0) IERC20(config.token).safeTransfer(config.payer, amount);
    }

    function _isPayers(ChannelConfig calldata config) private view returns (bool) {
        return msg.sender == config.payer || msg.sender == config.payerAuthorizer;
    }

    function _requireSignature(address signer, bytes32 digest, bytes calldata signature) private view {
        if (!SignatureChecker.isValidSignatureNowCalldata(signer, digest, signature)) {
            revert InvalidSignature();
        }
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        bytes32 separator = keccak256(
            abi.encode(
                DOMAIN_TYPEHASH,
                keccak256(bytes(NAME)),
                keccak256(bytes(VERSION)),
                block.chainid,
                address(this)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", separator, structHash));
    }

    function _free(ChannelState storage channel) private view returns (uint128) {
        return channel.balance - channel.totalClaimed;
    }
}
