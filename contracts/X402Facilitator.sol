// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {
    AccessControlDefaultAdminRules
} from "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Bytes} from "@openzeppelin/contracts/utils/Bytes.sol";
import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";
import {RateLimiter} from "@openzeppelin/contracts/utils/RateLimiter.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {LastOperator} from "./LastOperator.sol";
import {WalletDeployer} from "./WalletDeployer.sol";
import {IAuthorizationToken} from "./interfaces/IAuthorizationToken.sol";
import {IPermit2} from "./interfaces/IPermit2.sol";
import {
    ExactWitness,
    IExactPermit2Proxy,
    IUptoPermit2Proxy,
    UptoWitness
} from "./interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "./interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "./interfaces/IX402Facilitator.sol";

/// @title X402Facilitator
/// @dev Nothing here depends on the address it stands at (no immutables), and it takes no ether: code and storage
/// can be carried to any address.
contract X402Facilitator is
    IX402Facilitator,
    IPermit2Settlement,
    LastOperator,
    AccessControlDefaultAdminRules,
    ReentrancyGuardTransient
{
    using SafeERC20 for IERC20;
    using RateLimiter for RateLimiter.RefillingBucket;

    /// @inheritdoc IX402Facilitator
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");

    /// @inheritdoc IX402Facilitator
    bytes32 public constant RECOVERER_ROLE = keccak256("RECOVERER_ROLE");

    /// @inheritdoc IX402Facilitator
    bytes32 public constant PAUSER_ROLE = keccak256("PAUSER_ROLE");

    /// @inheritdoc IX402Facilitator
    uint256 public constant PULL_GAS = 250_000;

    /// @inheritdoc IX402Facilitator
    uint256 public constant FORWARD_GAS = 150_000;

    /// @dev For the factory of a wallet.
    uint256 private constant DEPLOY_GAS = 1_000_000;

    /// @inheritdoc IX402Facilitator
    uint256 public constant MAX_REASON_LENGTH = 256;

    /// @inheritdoc IX402Facilitator
    uint48 public constant FORWARD_WINDOW = 24 hours;

    /// @inheritdoc IX402Facilitator
    uint256 public constant DEFAULT_FORWARD_LIMIT = 1_000;

    /// @inheritdoc IX402Facilitator
    uint256 public constant RESCUE_DELAY = 2 days;

    /// @inheritdoc IX402Facilitator
    uint256 public constant RESCUE_WINDOW = 14 days;

    /// @dev Bytes behind the arguments of {settleGroups}: the first group, the one after the last, and whether the
    /// balance is checked after each pull.
    uint256 private constant ATTEMPT_LENGTH = 0x60;

    /// @dev Of EIP-3009, the same for every token.
    bytes32 private constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    /// @dev These three stand at the same address on every chain.
    IPermit2 private constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);
    IExactPermit2Proxy private constant EXACT_PROXY =
        IExactPermit2Proxy(0x402085c248EeA27D92E8b30b2C58ed07f9E20001);
    IUptoPermit2Proxy private constant UPTO_PROXY =
        IUptoPermit2Proxy(0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002);

    /// @dev Of Permit2, with the witness of scheme "exact".
    bytes32 private constant PERMIT_WITNESS_TRANSFER_FROM_TYPEHASH = keccak256(
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)"
    );
    bytes32 private constant TOKEN_PERMISSIONS_TYPEHASH =
        keccak256("TokenPermissions(address token,uint256 amount)");
    bytes32 private constant EXACT_WITNESS_TYPEHASH = keccak256("Witness(address to,uint256 validAfter)");

    /// @dev More would not fit the bucket's 208 bits: 1,000 whole tokens are 10^(decimals + 3) units.
    uint256 private constant MAX_DECIMALS = 59;

    /// @dev A payment that somebody else submitted, and that is to be paid out.
    /// @param nonceSpace Keeps the payers' nonces, and its EIP-712 domain is that of the signature: the token, or Permit2.
    /// @param isUsed Whether the nonce is.
    struct Received {
        address nonceSpace;
        address token;
        address payer;
        bytes32 authorizationNonce;
        uint256 value;
        bool isUsed;
        bytes32 structHash;
        bytes signature;
    }

    /// @inheritdoc IX402Facilitator
    mapping(bytes32 key => bool) public forwarded;

    /// @inheritdoc IX402Facilitator
    mapping(bytes32 key => uint256) public rescueExecutableAt;

    /// @dev One limiter per token, since all buckets of a limiter have the same size; each has one bucket, with key
    /// zero. Its window is zero until the token's limit is set, or first needed.
    mapping(address token => RateLimiter.RefillingBucket) private _forwardBuckets;

    /// @dev These groups cannot be settled, for a reason that more gas would not mend. No reason means that the pulls
    /// did not bring what they should, and that each must be checked. From {settleGroups} to {settleBatch}, never
    /// further.
    error GroupsFailed(bytes reason);

    /// @dev The same as `onlyRole(OPERATOR_ROLE) whenNotPaused`, which costs 2,200 gas more.
    modifier onlyOperatorWhenNotPaused() {
        // Together, so that one read does for both.
        (address lastOperator, bool isPaused) = (_lastOperator, paused());
        if (msg.sender != lastOperator) _checkRole(OPERATOR_ROLE);
        if (isPaused) revert EnforcedPause();
        _;
    }

    /// @param adminDelay Seconds before a transfer of the admin role can be accepted.
    /// @param admin Grants and revokes roles, and announces rescues.
    /// @param operators Accounts that may settle.
    /// @param recoverer Account that may forward, or zero for none.
    /// @param pauser Account that may pause, or zero for none.
    constructor(
        uint48 adminDelay,
        address admin,
        address[] memory operators,
        address recoverer,
        address pauser
    ) AccessControlDefaultAdminRules(adminDelay, admin) {
        for (uint256 i = 0; i < operators.length; ++i) {
            _grantRole(OPERATOR_ROLE, operators[i]);
        }
        if (recoverer != address(0)) _grantRole(RECOVERER_ROLE, recoverer);
        if (pauser != address(0)) _grantRole(PAUSER_ROLE, pauser);
    }

    /// @inheritdoc IX402Facilitator
    function settle(
        address token,
        Authorization calldata authorization,
        bytes calldata signature,
        address recipient
    ) external onlyOperatorWhenNotPaused nonReentrant {
        // What {_requireValidRecipient} does, without the 29 gas of calling it.
        if (_isInvalidRecipient(recipient)) revert InvalidRecipient(recipient);
        uint256 value = authorization.value;
        uint256 before = _balance(token);

        if (!_pull(token, authorization, signature)) LowLevelCall.bubbleRevert(_reason(token));
        uint256 balance = _balance(token);
        if (balance != before + value) revert UnexpectedBalance(token, before + value, balance);

        if (!_forward(token, recipient, value)) LowLevelCall.bubbleRevert(_reason(token));
        balance = _balance(token);
        if (balance != before) revert UnexpectedBalance(token, before, balance);

        emit Settled(token, authorization.from, authorization.nonce, recipient, value);
    }

    /// @inheritdoc IX402Facilitator
    function settleBatch(address token, Group[] calldata groups)
        external
        onlyOperatorWhenNotPaused
        nonReentrant
    {
        // The calldata as it came, for another function, and what each attempt overwrites.
        bytes memory data = bytes.concat(this.settleGroups.selector, msg.data[4:], new bytes(ATTEMPT_LENGTH));
        (bool settled, bytes memory reason) = _trySettleGroups(data, 0, groups.length, false);
        if (settled) return;

        // One group at a time, so that the failure stays with what caused it, with a check after each payment.
        for (uint256 i = 0; i < groups.length; ++i) {
            if (groups.length > 1 || reason.length == 0) {
                (settled, reason) = _trySettleGroups(data, i, i + 1, true);
            }
            if (!settled) _reportFailed(token, groups[i].payments, reason);
        }
    }

    /**
     * @dev Settles some of the groups or reverts as a whole. {settleBatch} calls it from outside because only a call
     * can be undone. Which groups, and how, stands behind the arguments: so those can be handed on as they came,
     * where encoding them anew costs 700 gas per payment.
     *
     * All payments are pulled before the first recipient is paid: this contract's balance then leaves zero once per
     * batch and not once per group, which saves 3,000 gas per group.
     */
    function settleGroups(address token, Group[] calldata groups) external {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        (uint256 start, uint256 end, bool checkEach) =
            abi.decode(msg.data[msg.data.length - ATTEMPT_LENGTH:], (uint256, uint256, bool));

        uint256 initialBalance = _balance(token);
        uint256 balance = initialBalance;
        uint256[] memory totals = new uint256[](end - start);

        for (uint256 i = start; i < end; ++i) {
            uint256 balanceAfter = _pullGroup(token, groups[i], balance, checkEach);
            totals[i - start] = balanceAfter - balance;
            balance = balanceAfter;
        }
        // All together have brought what they should; or else each is checked, in another attempt.
        if (!checkEach && _balance(token) != balance) revert GroupsFailed("");
        for (uint256 i = start; i < end; ++i) {
            uint256 total = totals[i - start];
            if (total != 0 && !_forward(token, groups[i].recipient, total)) {
                revert GroupsFailed(_reason(token));
            }
        }

        balance = _balance(token);
        if (balance != initialBalance) {
            revert GroupsFailed(_unexpectedBalance(token, initialBalance, balance));
        }
    }

    /// @inheritdoc IX402Facilitator
    /// @dev Takes its arguments to memory: sharing decoders with {settle} and {settleBatch} would cost those gas. Its name
    /// and that of {transferBatch} sort behind theirs, since each function before costs a call 22 gas.
    function transferDirect(address token, Payment memory payment, address payee)
        external
        onlyOperatorWhenNotPaused
        nonReentrant
    {
        _requireCode(token);
        bytes memory reason = _transferDirect(token, payment, payee);
        if (reason.length != 0) LowLevelCall.bubbleRevert(reason);
    }

    /// @inheritdoc IX402Facilitator
    function transferBatch(address token, Group[] memory groups)
        external
        onlyOperatorWhenNotPaused
        nonReentrant
    {
        _requireCode(token);
        for (uint256 i = 0; i < groups.length; ++i) {
            Group memory group = groups[i];
            for (uint256 j = 0; j < group.payments.length; ++j) {
                Payment memory payment = group.payments[j];
                bytes memory reason = _transferDirect(token, payment, group.recipient);
                if (reason.length == 0) continue;
                Authorization memory authorization = payment.authorization;
                emit SettlementFailed(token, authorization.from, authorization.nonce, reason);
            }
        }
    }

    /// @inheritdoc IPermit2Settlement
    function settlePermit2(Permit2Group memory group) external onlyOperatorWhenNotPaused nonReentrant {
        _settlePermit2(group);
    }

    /// @inheritdoc IPermit2Settlement
    function settlePermit2Batch(Permit2Group[] memory groups)
        external
        onlyOperatorWhenNotPaused
        nonReentrant
    {
        for (uint256 i = 0; i < groups.length; ++i) {
            Permit2Group memory group = groups[i];
            Permit2Payment[] memory payments = group.payments;
            (bool settled, bytes memory reason) = _trySettlePermit2(group);
            if (settled) continue;
            // Each by itself, so that the failure stays with what caused it.
            group.payments = new Permit2Payment[](1);
            for (uint256 j = 0; j < payments.length; ++j) {
                group.payments[0] = payments[j];
                if (payments.length > 1) (settled, reason) = _trySettlePermit2(group);
                if (!settled) _reportFailed(group.token, payments[j], reason);
            }
        }
    }

    /// @dev {settlePermit2Batch} calls it from outside because only a call can be undone.
    function settlePermit2Group(Permit2Group memory group) external {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        _settlePermit2(group);
    }

    /// @inheritdoc IX402Facilitator
    function deployAndSettle(
        address wallet,
        address factory,
        bytes memory factoryData,
        bytes memory settlement
    ) external onlyOperatorWhenNotPaused {
        if (wallet.code.length == 0) {
            // What creating the account takes on top, and the 64th that it keeps of what is left.
            _requireGas(DEPLOY_GAS + 50_000);
            new WalletDeployer(factory, DEPLOY_GAS, factoryData);
            if (wallet.code.length == 0) revert WalletNotDeployed(wallet, factory);
        }
        // A call that its caller could make as well: it is checked and guarded there.
        if (!LowLevelCall.delegatecallNoReturn(address(this), settlement)) LowLevelCall.bubbleRevert();
    }

    /// @inheritdoc IX402Facilitator
    /// @dev Takes its arguments to memory, as {transferDirect} does.
    function forwardReceived(
        address token,
        Authorization memory authorization,
        bytes memory signature,
        address recipient
    ) external onlyRole(RECOVERER_ROLE) whenNotPaused nonReentrant {
        (address payer, bytes32 authorizationNonce) = (authorization.from, authorization.nonce);
        _forwardReceived(
            Received({
                nonceSpace: token,
                token: token,
                payer: payer,
                authorizationNonce: authorizationNonce,
                value: authorization.value,
                isUsed: IAuthorizationToken(token).authorizationState(payer, authorizationNonce),
                structHash: _structHash(authorization),
                signature: signature
            }),
            recipient
        );
        emit Forwarded(token, payer, authorizationNonce, recipient, authorization.value);
    }

    /// @inheritdoc IPermit2Settlement
    function forwardReceivedWithPermit2(address token, Permit2Payment memory payment, address recipient)
        external
        onlyRole(RECOVERER_ROLE)
        whenNotPaused
        nonReentrant
    {
        (address payer, uint256 nonce) = (payment.payer, payment.nonce);
        // First, because code that ends as {settle} does would be shared with it, which costs that 11 gas.
        emit Permit2Forwarded(token, payer, nonce, recipient, payment.permitted);
        _forwardReceived(
            Received({
                nonceSpace: address(PERMIT2),
                token: token,
                payer: payer,
                authorizationNonce: bytes32(nonce),
                value: payment.permitted,
                isUsed: PERMIT2.nonceBitmap(payer, nonce >> 8) & (1 << (nonce & 0xff)) != 0,
                structHash: _structHash(token, payment),
                signature: payment.signature
            }),
            recipient
        );
    }

    /// @inheritdoc IX402Facilitator
    function setForwardLimit(address token, uint256 value) external onlyRole(DEFAULT_ADMIN_ROLE) {
        RateLimiter.RefillingBucket storage bucket = _forwardBuckets[token];
        // What has come back so far came back at the old limit's pace.
        bucket.sync(0);
        bucket.updateSettings(FORWARD_WINDOW, SafeCast.toUint208(value));
        emit ForwardLimitSet(token, value);
    }

    /// @inheritdoc IX402Facilitator
    function pause() external onlyRole(PAUSER_ROLE) {
        _pause();
    }

    /// @inheritdoc IX402Facilitator
    function unpause() external onlyRole(PAUSER_ROLE) {
        _unpause();
    }

    /// @inheritdoc IX402Facilitator
    function announceRescue(address token, address recipient, uint256 value)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _requireValidRecipient(recipient);
        uint256 executableAt = block.timestamp + RESCUE_DELAY;
        rescueExecutableAt[_rescueKey(token, recipient, value)] = executableAt;
        emit RescueAnnounced(token, recipient, value, executableAt);
    }

    /// @inheritdoc IX402Facilitator
    function cancelRescue(address token, address recipient, uint256 value)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _takeRescue(token, recipient, value);
        emit RescueCancelled(token, recipient, value);
    }

    /// @inheritdoc IX402Facilitator
    function executeRescue(address token, address recipient, uint256 value)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
        nonReentrant
    {
        uint256 executableAt = _takeRescue(token, recipient, value);
        if (block.timestamp < executableAt) revert RescueTooEarly(executableAt);
        uint256 expiredAt = executableAt + RESCUE_WINDOW;
        if (block.timestamp >= expiredAt) revert RescueExpired(expiredAt);
        IERC20(token).safeTransfer(recipient, value);
        emit RescueExecuted(token, recipient, value);
    }

    /// @inheritdoc IX402Facilitator
    function forwardLimit(address token) external view returns (uint256) {
        RateLimiter.RefillingBucket storage bucket = _forwardBuckets[token];
        return bucket._window == 0 ? _defaultForwardLimit(token) : bucket._capacity;
    }

    /// @inheritdoc IX402Facilitator
    function availableToForward(address token) external view returns (uint256) {
        RateLimiter.RefillingBucket storage bucket = _forwardBuckets[token];
        return bucket._window == 0 ? _defaultForwardLimit(token) : bucket.available(0);
    }

    function _grantRole(bytes32 role, address account) internal override returns (bool) {
        if (role == OPERATOR_ROLE) _lastOperator = account;
        return super._grantRole(role, account);
    }

    function _revokeRole(bytes32 role, address account) internal override returns (bool) {
        if (role == OPERATOR_ROLE && account == _lastOperator) delete _lastOperator;
        return super._revokeRole(role, account);
    }

    /// @dev Pulls the payments of a group. Returns the balance after the last: as it is when each is checked, as it
    /// should be otherwise.
    function _pullGroup(address token, Group calldata group, uint256 balance, bool checkEach)
        private
        returns (uint256)
    {
        address recipient = group.recipient;
        if (_isInvalidRecipient(recipient)) {
            revert GroupsFailed(abi.encodeWithSelector(InvalidRecipient.selector, recipient));
        }
        Payment[] calldata payments = group.payments;
        for (uint256 i = 0; i < payments.length; ++i) {
            balance = _pullPayment(token, recipient, payments[i], balance, checkEach);
        }
        return balance;
    }

    /// @dev Pulls one payment and says what came of it. Returns the balance after, as {_pullGroup} does.
    function _pullPayment(
        address token,
        address recipient,
        Payment calldata payment,
        uint256 balance,
        bool checkEach
    ) private returns (uint256) {
        Authorization calldata authorization = payment.authorization;
        if (!_pull(token, authorization, payment.signature)) {
            emit SettlementFailed(token, authorization.from, authorization.nonce, _reason(token));
            return balance;
        }
        uint256 value = authorization.value;
        (bool possible, uint256 expected) = Math.tryAdd(balance, value);
        if (checkEach) {
            uint256 actual = _balance(token);
            if (!possible || actual != expected) {
                bytes memory reason = _unexpectedBalance(token, Math.saturatingAdd(balance, value), actual);
                // Some tokens return without a transfer when the nonce is used. Anything else that is not the value
                // cannot be left where it is.
                if (actual != balance) revert GroupsFailed(reason);
                emit SettlementFailed(token, authorization.from, authorization.nonce, reason);
                return balance;
            }
        } else if (!possible) {
            revert GroupsFailed("");
        }
        emit Settled(token, authorization.from, authorization.nonce, recipient, value);
        return expected;
    }

    /// @dev Has the token move the payer's value to its payee. Returns why not, or nothing.
    function _transferDirect(address token, Payment memory payment, address payee)
        private
        returns (bytes memory)
    {
        if (_isInvalidRecipient(payee)) {
            return abi.encodeWithSelector(InvalidRecipient.selector, payee);
        }
        Authorization memory authorization = payment.authorization;
        address payer = authorization.from;
        if (payer == address(this)) return abi.encodeWithSelector(InvalidPayer.selector, payer);
        bytes memory data = abi.encodeCall(
            IAuthorizationToken.transferWithAuthorization,
            (
                payer,
                payee,
                authorization.value,
                authorization.validAfter,
                authorization.validBefore,
                authorization.nonce,
                payment.signature
            )
        );
        return _tryCall(token, data) ? bytes("") : _reason(token);
    }

    /// @dev Calls another contract with {PULL_GAS}. What it returns is not copied: its size may be the payer's choice.
    function _tryCall(address target, bytes memory data) private returns (bool success) {
        _requireGas(PULL_GAS);
        assembly ("memory-safe") {
            success := call(PULL_GAS, target, 0, add(data, 0x20), mload(data), 0, 0)
        }
    }

    /// @dev Asks the token for the payer's value. After `false`, the token's reason is in the return data.
    function _pull(address token, Authorization calldata authorization, bytes calldata signature)
        private
        returns (bool success)
    {
        address payer = authorization.from;
        bytes4 selector = IAuthorizationToken.transferWithAuthorization.selector;
        _requireGas(PULL_GAS);
        // By hand, because the compiler's own encoding costs 200 gas more, and because a Solidity call would copy all
        // of the return data, whose size the payer's wallet may choose.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            mstore(add(data, 0x04), payer)
            mstore(add(data, 0x24), address())
            // Value, validAfter, validBefore and nonce stand in a row.
            calldatacopy(add(data, 0x44), add(authorization, 0x20), 0x80)
            mstore(add(data, 0xc4), 0xe0)
            // The signature, filled up to whole words with zeros.
            let size := and(add(signature.length, 0x1f), not(0x1f))
            mstore(add(data, add(0xe4, size)), 0)
            mstore(add(data, 0xe4), signature.length)
            calldatacopy(add(data, 0x104), signature.offset, signature.length)
            success := call(PULL_GAS, token, 0, data, add(0x104, size), 0, 0)
        }
    }

    /// @dev Sends tokens held here. After `false`, the token's reason is in the return data.
    function _forward(address token, address recipient, uint256 value) private returns (bool) {
        _requireGas(FORWARD_GAS);
        return IERC20(token).trySafeTransfer(recipient, value);
    }

    /// @dev Calls {settleGroups} with `data`, for `groups[start:end]`. `false` means that these groups cannot be
    /// settled, for the reason given. Everything that is no such verdict, running out of gas above all, reverts.
    function _trySettleGroups(bytes memory data, uint256 start, uint256 end, bool checkEach)
        private
        returns (bool settled, bytes memory reason)
    {
        assembly ("memory-safe") {
            let attempt := add(add(data, 0x20), sub(mload(data), ATTEMPT_LENGTH))
            mstore(attempt, start)
            mstore(add(attempt, 0x20), end)
            mstore(add(attempt, 0x40), checkEach)
            settled := call(gas(), address(), 0, add(data, 0x20), mload(data), 0, 0)
        }
        if (settled) return (true, "");
        bytes memory failure = LowLevelCall.returnData();
        // forge-lint: disable-next-line(unsafe-typecast): the selector is what the cast is to leave.
        if (bytes4(failure) != GroupsFailed.selector) LowLevelCall.bubbleRevert(failure);
        reason = abi.decode(Bytes.slice(failure, 4), (bytes));
    }

    function _reportFailed(address token, Payment[] calldata payments, bytes memory reason) private {
        for (uint256 i = 0; i < payments.length; ++i) {
            Authorization calldata authorization = payments[i].authorization;
            emit SettlementFailed(token, authorization.from, authorization.nonce, reason);
        }
    }

    /// @dev Moves the payments of a group, and reverts with the reason when what arrives is something else, or cannot be sent
    /// on. A payment that the proxy refuses is left out and reported where this contract calls itself, for a batch.
    function _settlePermit2(Permit2Group memory group) private {
        (address token, address recipient) = (group.token, group.recipient);
        _requireValidRecipient(recipient);
        address to = group.direct ? recipient : address(this);
        uint256 initialBalance = _balanceOf(token, to);
        uint256 balance = initialBalance;
        for (uint256 i = 0; i < group.payments.length; ++i) {
            Permit2Payment memory payment = group.payments[i];
            if (!_pullWithPermit2(token, group.upto, to, payment)) {
                bytes memory reason = _reason(token);
                if (msg.sender != address(this)) LowLevelCall.bubbleRevert(reason);
                _reportFailed(token, payment, reason);
                continue;
            }
            uint256 expected = balance + payment.amount;
            balance = _balanceOf(token, to);
            if (balance != expected) revert UnexpectedBalance(token, expected, balance);
            emit Permit2Settled(token, payment.payer, payment.nonce, recipient, payment.amount);
        }
        if (group.direct || balance == initialBalance) return;
        if (!_forward(token, recipient, balance - initialBalance)) {
            LowLevelCall.bubbleRevert(_reason(token));
        }
        _requireBalance(token, initialBalance);
    }

    /// @dev `false` means that this group cannot be settled as a whole, for the reason given. Running out of gas is no such
    /// verdict, and reverts.
    function _trySettlePermit2(Permit2Group memory group)
        private
        returns (bool settled, bytes memory reason)
    {
        bytes memory data = abi.encodeCall(this.settlePermit2Group, (group));
        if (LowLevelCall.callNoReturn(address(this), data)) return (true, "");
        reason = LowLevelCall.returnData();
        // forge-lint: disable-next-line(unsafe-typecast): the selector is what the cast is to leave.
        if (reason.length == 0 || bytes4(reason) == InsufficientGas.selector) {
            LowLevelCall.bubbleRevert(reason);
        }
    }

    /// @dev Has the proxy move what the payer signed. After `false`, the reason is in the return data.
    function _pullWithPermit2(address token, bool isUpto, address to, Permit2Payment memory payment)
        private
        returns (bool success)
    {
        bool isApproved = payment.approval.length == 0;
        address proxy = address(EXACT_PROXY);
        bytes4 selector =
            isApproved ? IExactPermit2Proxy.settle.selector : IExactPermit2Proxy.settleWithPermit.selector;
        if (isUpto) {
            proxy = address(UPTO_PROXY);
            selector =
                isApproved ? IUptoPermit2Proxy.settle.selector : IUptoPermit2Proxy.settleWithPermit.selector;
        }
        _requireGas(PULL_GAS);
        // By hand, because the compiler's four encoders do not fit into the contract: the four functions take the same words in
        // the same order, and each has some that the others lack. As everywhere, what is returned is not copied.
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            let word := add(data, 0x04)
            // Five words whatever its length, which must not move the others.
            if iszero(isApproved) {
                mcopy(word, add(mload(add(payment, 0xc0)), 0x20), 0xa0)
                word := add(word, 0xa0)
            }
            mstore(word, token)
            // The permitted amount, nonce and deadline stand in a row.
            mcopy(add(word, 0x20), add(payment, 0x20), 0x60)
            word := add(word, 0x80)
            if isUpto {
                mstore(word, mload(add(payment, 0xa0)))
                word := add(word, 0x20)
            }
            mstore(word, mload(payment))
            mstore(add(word, 0x20), to)
            word := add(word, 0x40)
            if isUpto {
                mstore(word, address())
                word := add(word, 0x20)
            }
            mstore(word, mload(add(payment, 0x80)))
            // Where the signature is, counted from the first argument; and the signature.
            mstore(add(word, 0x20), sub(add(word, 0x3c), data))
            let signature := mload(add(payment, 0xe0))
            let size := add(0x20, and(add(mload(signature), 0x1f), not(0x1f)))
            mcopy(add(word, 0x40), signature, size)
            success := call(PULL_GAS, proxy, 0, data, sub(add(add(word, 0x40), size), data), 0, 0)
        }
    }

    function _reportFailed(address token, Permit2Payment memory payment, bytes memory reason) private {
        emit Permit2SettlementFailed(token, payment.payer, payment.nonce, reason);
    }

    /// @dev Pays out what a payment brought here, once.
    function _forwardReceived(Received memory received, address recipient) private {
        (address token, address payer) = (received.token, received.payer);
        bytes32 authorizationNonce = received.authorizationNonce;
        _requireValidRecipient(recipient);
        bytes32 key = keccak256(abi.encode(received.nonceSpace, payer, authorizationNonce));
        if (forwarded[key]) revert AlreadyForwarded(token, payer, authorizationNonce);
        if (!received.isUsed) revert AuthorizationNotUsed(token, payer, authorizationNonce);
        bytes32 digest = MessageHashUtils.toTypedDataHash(
            IAuthorizationToken(received.nonceSpace).DOMAIN_SEPARATOR(), received.structHash
        );
        if (!SignatureChecker.isValidSignatureNow(payer, digest, received.signature)) {
            revert AuthorizationNotSigned(token, payer, authorizationNonce);
        }
        forwarded[key] = true;
        _countForward(token, received.value);

        uint256 balance = _balance(token);
        IERC20(token).safeTransfer(recipient, received.value);
        _requireBalance(token, balance - received.value);
    }

    /// @dev Takes `value` from what may be forwarded of the token now.
    function _countForward(address token, uint256 value) private {
        RateLimiter.RefillingBucket storage bucket = _forwardBuckets[token];
        // Stored, so that the token cannot move it by another answer to `decimals()`.
        if (bucket._window == 0) {
            bucket.updateSettings(FORWARD_WINDOW, SafeCast.toUint208(_defaultForwardLimit(token)));
        }
        if (!bucket.tryConsume(0, value)) {
            revert ForwardLimitExceeded(token, bucket.available(0), value);
        }
    }

    /// @dev What the payer signed, in the token's EIP-712 domain: the authorization, to this contract.
    function _structHash(Authorization memory authorization) private view returns (bytes32) {
        return keccak256(
            abi.encode(
                TRANSFER_WITH_AUTHORIZATION_TYPEHASH,
                authorization.from,
                address(this),
                authorization.value,
                authorization.validAfter,
                authorization.validBefore,
                authorization.nonce
            )
        );
    }

    /// @dev What the payer signed, in Permit2's EIP-712 domain: the exact payment, to this contract.
    function _structHash(address token, Permit2Payment memory payment) private view returns (bytes32) {
        return keccak256(
            abi.encode(
                PERMIT_WITNESS_TRANSFER_FROM_TYPEHASH,
                keccak256(abi.encode(TOKEN_PERMISSIONS_TYPEHASH, token, payment.permitted)),
                EXACT_PROXY,
                payment.nonce,
                payment.deadline,
                keccak256(abi.encode(EXACT_WITNESS_TYPEHASH, address(this), payment.validAfter))
            )
        );
    }

    /// @dev {DEFAULT_FORWARD_LIMIT} in the token's smallest unit; 0 for a token that does not say what a whole one is.
    function _defaultForwardLimit(address token) private view returns (uint256) {
        (bool success, bytes32 decimals,) =
            LowLevelCall.staticcallReturn64Bytes(token, abi.encodeCall(IERC20Metadata.decimals, ()));
        if (!success || LowLevelCall.returnDataSize() < 0x20 || uint256(decimals) > MAX_DECIMALS) return 0;
        return DEFAULT_FORWARD_LIMIT * 10 ** uint256(decimals);
    }

    /// @dev Removes an announced rescue and returns when it can be executed.
    function _takeRescue(address token, address recipient, uint256 value)
        private
        returns (uint256 executableAt)
    {
        bytes32 key = _rescueKey(token, recipient, value);
        executableAt = rescueExecutableAt[key];
        if (executableAt == 0) revert RescueNotAnnounced(token, recipient, value);
        delete rescueExecutableAt[key];
    }

    function _requireBalance(address token, uint256 expected) private view {
        uint256 actual = _balance(token);
        if (actual != expected) revert UnexpectedBalance(token, expected, actual);
    }

    /// @dev A call gets 63/64 of the gas that is left, at most. Given less than it needs, a call that would have
    /// succeeded fails while its caller has a 64th to go on with: a good payment would be reported as failed. The
    /// 10,000 cover the way from here to the call.
    function _requireGas(uint256 needed) private view {
        uint256 required = needed + needed / 63 + 10_000;
        uint256 available = gasleft();
        if (available < required) revert InsufficientGas(available, required);
    }

    /// @dev The balance of this contract.
    function _balance(address token) private view returns (uint256 held) {
        bool success;
        bytes4 selector = IERC20.balanceOf.selector;
        assembly ("memory-safe") {
            mstore(0x00, selector)
            mstore(0x04, address())
            success := staticcall(gas(), token, 0x00, 0x24, 0x00, 0x20)
            success := and(success, gt(returndatasize(), 0x1f))
            held := mload(0x00)
        }
        if (!success) revert TokenCallFailed(token);
    }

    /// @dev The same of any account, apart so that {settle} pays nothing for it.
    function _balanceOf(address token, address account) private view returns (uint256 held) {
        bool success;
        bytes4 selector = IERC20.balanceOf.selector;
        assembly ("memory-safe") {
            mstore(0x00, selector)
            mstore(0x04, account)
            success := staticcall(gas(), token, 0x00, 0x24, 0x00, 0x20)
            success := and(success, gt(returndatasize(), 0x1f))
            held := mload(0x00)
        }
        if (!success) revert TokenCallFailed(token);
    }

    /// @dev Why the last call to the token failed, as an ABI-encoded error: the start of its return data, unless
    /// that is empty or the single word of a returned `false`.
    function _reason(address token) private pure returns (bytes memory reason) {
        uint256 size = LowLevelCall.returnDataSize();
        if (size == 0 || size == 32) return abi.encodeWithSelector(TokenCallFailed.selector, token);
        if (size > MAX_REASON_LENGTH) size = MAX_REASON_LENGTH;
        reason = new bytes(size);
        assembly ("memory-safe") {
            returndatacopy(add(reason, 0x20), 0, size)
        }
    }

    function _unexpectedBalance(address token, uint256 expected, uint256 actual)
        private
        pure
        returns (bytes memory)
    {
        return abi.encodeWithSelector(UnexpectedBalance.selector, token, expected, actual);
    }

    function _requireCode(address token) private view {
        if (token.code.length == 0) revert TokenCallFailed(token);
    }

    function _requireValidRecipient(address recipient) private view {
        if (_isInvalidRecipient(recipient)) revert InvalidRecipient(recipient);
    }

    function _isInvalidRecipient(address recipient) private view returns (bool) {
        return recipient == address(0) || recipient == address(this);
    }

    function _rescueKey(address token, address recipient, uint256 value) private pure returns (bytes32) {
        return keccak256(abi.encode(token, recipient, value));
    }
}
