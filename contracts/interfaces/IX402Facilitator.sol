// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/**
 * @title Settles x402 payments of scheme "exact", by EIP-3009
 * @notice A payer signs an EIP-3009 authorization, to one of two:
 *
 * - to this contract. The operator names the recipient, and the value moves payer → this contract → recipient within
 *   one call, or does not move at all ({settle}, {settleBatch}). The payer's signature does not cover the recipient;
 *   that is why settling is for operators alone.
 * - to the payee itself. The value never comes here ({transferDirect}, {transferBatch}).
 *
 * So the contract holds only what reached it in another way: authorizations that somebody else submitted straight to
 * the token, and tokens sent by mistake. The first kind leaves through {forwardReceived}, anything through a rescue.
 */
interface IX402Facilitator {
    /// @notice An EIP-3009 `TransferWithAuthorization`. Its `to` is this contract, or the payee of {transferDirect} and
    /// {transferBatch}.
    /// @param from The payer.
    /// @param value Amount in the token's smallest unit.
    /// @param validAfter Unix seconds; the authorization holds from the second after.
    /// @param validBefore Unix seconds; the authorization holds until the second before.
    /// @param nonce The payer's authorization nonce: random, used once per payer and token.
    struct Authorization {
        address from;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    /// @notice An authorization with its signature: 65 bytes r, s, v for a plain account, anything the wallet's
    /// `isValidSignature` takes for an account with code.
    struct Payment {
        Authorization authorization;
        bytes signature;
    }

    /// @notice Payments of one batch that go to the same recipient: in one transfer, unless they go there at once.
    struct Group {
        address recipient;
        Payment[] payments;
    }

    /// @notice The payer's value went to the recipient.
    event Settled(
        address indexed token,
        address indexed payer,
        bytes32 indexed authorizationNonce,
        address recipient,
        uint256 value
    );

    /// @notice A payment of a batch was left out. Nothing of it moved; its authorization is as it was before.
    /// @param reason Revert data of the token, or of this contract, as an ABI-encoded error; cut after
    /// {MAX_REASON_LENGTH} bytes.
    event SettlementFailed(
        address indexed token, address indexed payer, bytes32 indexed authorizationNonce, bytes reason
    );

    /// @notice Value that an authorization had brought here outside of a settlement went to its recipient.
    event Forwarded(
        address indexed token,
        address indexed payer,
        bytes32 indexed authorizationNonce,
        address recipient,
        uint256 value
    );

    /// @notice The admin set the {forwardLimit} of a token.
    event ForwardLimitSet(address indexed token, uint256 value);

    /// @notice The admin announced a rescue, which can be executed from `executableAt` (unix seconds) on.
    event RescueAnnounced(
        address indexed token, address indexed recipient, uint256 value, uint256 executableAt
    );

    /// @notice An announced rescue was withdrawn.
    event RescueCancelled(address indexed token, address indexed recipient, uint256 value);

    /// @notice An announced rescue was carried out.
    event RescueExecuted(address indexed token, address indexed recipient, uint256 value);

    /// @notice The zero address and this contract are no recipients.
    error InvalidRecipient(address recipient);

    /// @notice There is no code at the wallet's address, although its factory was called.
    error WalletNotDeployed(address wallet, address factory);

    /// @notice This contract itself is no payer.
    error InvalidPayer(address payer);

    /// @notice The token moved something else than the value it was asked to move: it charges a fee, reports
    /// success without a transfer, or calls back.
    error UnexpectedBalance(address token, uint256 expected, uint256 actual);

    /// @notice The token reverted without a reason, returned false, or is no token at all.
    error TokenCallFailed(address token);

    /// @notice Too little gas is left to tell a call that fails from a call that ran out of gas. Send more.
    error InsufficientGas(uint256 available, uint256 required);

    /// @notice The token says that this authorization was never used, so it cannot have brought anything here.
    error AuthorizationNotUsed(address token, address payer, bytes32 authorizationNonce);

    /// @notice The payer did not sign such an authorization to this contract; or the payer's wallet, which is asked
    /// now, does not stand by it any more.
    error AuthorizationNotSigned(address token, address payer, bytes32 authorizationNonce);

    /// @notice Only `available` of the token may be forwarded now. With time more may be, up to {forwardLimit}; or at
    /// once when the admin raises that.
    error ForwardLimitExceeded(address token, uint256 available, uint256 requested);

    /// @notice This authorization was paid out before.
    error AlreadyForwarded(address token, address payer, bytes32 authorizationNonce);

    /// @notice No such rescue is announced.
    error RescueNotAnnounced(address token, address recipient, uint256 value);

    /// @notice Only this contract itself may call.
    error OnlySelf(address caller);

    /// @notice The rescue cannot be executed before `executableAt` (unix seconds).
    error RescueTooEarly(uint256 executableAt);

    /// @notice The rescue had to be executed before `expiredAt` (unix seconds); announce it again.
    error RescueExpired(uint256 expiredAt);

    /// @notice Moves one payment from its payer to the recipient.
    /// @dev For OPERATOR_ROLE, while not paused. Reverts with the token's own reason when the token refuses, with
    /// {TokenCallFailed} when it gives none, and with {UnexpectedBalance} when it moves another amount.
    /// The token gets at most {PULL_GAS} for the pull, so that a simulation of this call fails as a batch would.
    function settle(
        address token,
        Authorization calldata authorization,
        bytes calldata signature,
        address recipient
    ) external;

    /// @notice Moves many payments of one token, with one transfer per recipient.
    /// @dev For OPERATOR_ROLE, while not paused. A payment that the token refuses is left out and reported by
    /// {SettlementFailed}. When a recipient cannot be paid, the pulls of its group are undone, so that their
    /// authorizations stay unused, and each is reported; the other groups settle. Gas running out is never
    /// reported as a failed payment: it reverts the whole batch.
    function settleBatch(address token, Group[] calldata groups) external;

    /**
     * @notice Moves one payment from its payer to its payee at once: the `to` that the payer signed.
     * @dev For OPERATOR_ROLE, while not paused. Reverts with the token's own reason when the token refuses, with
     * {TokenCallFailed} when it gives none or has no code, with {InvalidRecipient} when the payee is this contract or
     * zero, and with {InvalidPayer} when the payer is this contract.
     *
     * Anyone can submit such a payment straight to the token, for less gas. Here the token gets at most {PULL_GAS}, so that
     * a simulation of this call fails as {transferBatch} would.
     *
     * There is no event of this contract: the token's own `AuthorizationUsed`, directly followed by its `Transfer` of the
     * value from the payer to the payee, proves the payment, whoever submitted it. Returning without a revert proves
     * nothing: some tokens do so, and move nothing, when the authorization was used.
     */
    function transferDirect(address token, Payment calldata payment, address payee) external;

    /**
     * @notice Moves many payments of one token from their payers to their payees at once.
     * @dev For OPERATOR_ROLE, while not paused. `recipient` of a group is the `to` that its payers signed. Each payment
     * is tried as {transferDirect} tries it: what that would revert with is the reason of a {SettlementFailed}, and the others
     * go on. Gas running out is never reported as a failed payment: it reverts the whole batch. A payment that settles
     * leaves the token's events alone.
     */
    function transferBatch(address token, Group[] calldata groups) external;

    /**
     * @notice Deploys a payer's wallet (ERC-6492) and settles its payment, or does neither.
     * @dev For OPERATOR_ROLE, while not paused. `settlement` is calldata of this contract: {settle}, {transferDirect} or any
     * other call that the operator may make; it reverts with what that reverts with, and the wallet is then not
     * deployed. So a signature that the wallet refuses leaves nothing behind. It is a plain settlement where the wallet
     * has code already, whoever deployed it.
     *
     * The factory is called by an account that has no power and is used once, with at most 1,000,000 gas and no ether.
     * Which factories are called is for the caller to decide, and nothing else of this contract depends on it.
     */
    function deployAndSettle(
        address wallet,
        address factory,
        bytes calldata factoryData,
        bytes calldata settlement
    ) external;

    /**
     * @notice Pays out an authorization that somebody else submitted straight to the token, once.
     * @dev For RECOVERER_ROLE, while not paused. The contract checks what the chain can tell it:
     *
     * - the payer signed this very authorization to this contract: {AuthorizationNotSigned} otherwise;
     * - the token says that it was used: {AuthorizationNotUsed} otherwise;
     * - it was not forwarded before: {AlreadyForwarded} otherwise;
     * - its value is within {availableToForward}: {ForwardLimitExceeded} otherwise.
     *
     * That does not prove that it brought anything here. The token gives the same answer for an authorization that was
     * cancelled, settled, or whose nonce the payer used for another one, and each of these can be claimed with its
     * signature; a payer who helps can sign any value for that. So the caller must have proven off chain, from the logs
     * of one transaction, that it did. Wrong claims together take no more than what is stranded here, and no more than
     * {forwardLimit} at once and again within each {FORWARD_WINDOW}.
     *
     * A wallet with code is asked now (ERC-1271), not when the authorization was used. Where it has changed its
     * answer since, or an account has gained or lost its code, the value is left to a rescue.
     */
    function forwardReceived(
        address token,
        Authorization calldata authorization,
        bytes calldata signature,
        address recipient
    ) external;

    /// @notice Sets the {forwardLimit} of a token, in its smallest unit; 0 stops its forwards. What was forwarded
    /// before and has not come back yet still counts. For the admin.
    function setForwardLimit(address token, uint256 value) external;

    /// @notice Stops settling, and {forwardReceived}. For PAUSER_ROLE.
    function pause() external;

    /// @notice Ends a pause. For PAUSER_ROLE.
    function unpause() external;

    /// @notice Announces that tokens held here will be sent to `recipient` after {RESCUE_DELAY}. Announcing the
    /// same rescue again starts its delay anew. For the admin.
    function announceRescue(address token, address recipient, uint256 value) external;

    /// @notice Withdraws an announced rescue. For the admin.
    function cancelRescue(address token, address recipient, uint256 value) external;

    /// @notice Carries out an announced rescue, after {RESCUE_DELAY} and within {RESCUE_WINDOW}. For the admin.
    function executeRescue(address token, address recipient, uint256 value) external;

    /// @notice Whether {forwardReceived} paid this key out; the key is
    /// `keccak256(abi.encode(token, payer, authorizationNonce))`, and of a payment by Permit2 the same with Permit2 for the
    /// token.
    function forwarded(bytes32 key) external view returns (bool);

    /// @notice The most that may be forwarded of a token at once, in its smallest unit. What is forwarded comes back
    /// evenly, at this much per {FORWARD_WINDOW}: so within any such time at most twice this is forwarded, and in the
    /// long run once this per {FORWARD_WINDOW}. Until the admin sets it: {DEFAULT_FORWARD_LIMIT} whole tokens, or 0 for
    /// a token that does not say what a whole one is (`decimals()`).
    function forwardLimit(address token) external view returns (uint256);

    /// @notice How much of a token may be forwarded now: {forwardLimit} without what was forwarded and has not come
    /// back yet.
    function availableToForward(address token) external view returns (uint256);

    /// @notice From when on (unix seconds) an announced rescue can be executed, 0 when there is none; the key is
    /// `keccak256(abi.encode(token, recipient, value))`.
    function rescueExecutableAt(bytes32 key) external view returns (uint256);

    /// @notice Role that may settle. It names the recipients, so it is trusted with every authorization it is
    /// handed.
    function OPERATOR_ROLE() external view returns (bytes32);

    /// @notice Role that may pay out what authorizations submitted by others brought here.
    function RECOVERER_ROLE() external view returns (bytes32);

    /// @notice Role that may pause and end a pause.
    function PAUSER_ROLE() external view returns (bytes32);

    /// @notice Gas the token, or the proxy of Permit2, may use for one pull, which bounds what a payer's wallet can burn of a
    /// batch. USDC takes some 70,000 for a plain account; a contract wallet has about 175,000 for its own check, and in a
    /// payment by Permit2 with an approval about 143,000.
    function PULL_GAS() external view returns (uint256);

    /// @notice Gas that must be there before the transfer to a recipient is tried. More than any such transfer of a
    /// token that is settled here may take.
    function FORWARD_GAS() external view returns (uint256);

    /// @notice Bytes of revert data of others that this contract passes on. USDC's reasons take up to 132.
    function MAX_REASON_LENGTH() external view returns (uint256);

    /// @notice Seconds in which a {forwardLimit} that is used up comes back as a whole.
    function FORWARD_WINDOW() external view returns (uint48);

    /// @notice The {forwardLimit} of a token for which the admin has set none, in whole tokens.
    function DEFAULT_FORWARD_LIMIT() external view returns (uint256);

    /// @notice Seconds between the announcement of a rescue and its first possible execution.
    function RESCUE_DELAY() external view returns (uint256);

    /// @notice Seconds for which an announced rescue can then be executed.
    function RESCUE_WINDOW() external view returns (uint256);
}
