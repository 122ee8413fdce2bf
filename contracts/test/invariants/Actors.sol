// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {FacilitatorFixture} from "../utils/FacilitatorFixture.sol";
import {Vm} from "../utils/Vm.sol";
import {Receipt, Recovery} from "./Recovery.sol";

/**
 * @title Everybody who touches the facilitator, honest or not, and the books of what should come of it
 * @dev Each public function is one action of one actor, in one transaction. The honest are the operator, the
 * recoverer and the admin; payers and strangers do whatever the token lets them.
 *
 * | book           | meaning                                                    | changed by                      |
 * | -------------- | ---------------------------------------------------------- | ------------------------------- |
 * | `stranded`     | what came to the facilitator outside of settlements, less what left so | direct submissions, plain transfers, recoveries, rescues |
 * | `owed`         | what a recipient was named for                             | settlements, recoveries, rescues |
 * | `spent`        | what left a payer's account                                | everything a payer signs or does |
 * | `forwarded`    | what left by recoveries                                    | recoveries                      |
 * | `paidOut`      | whether a key was paid out, by a settlement or a recovery  | settlements, recoveries         |
 * | `neverToPay`   | whether a key was cancelled or spent elsewhere             | cancellations, spending         |
 */
contract Actors is FacilitatorFixture {
    struct Signed {
        MockUSDC token;
        uint256 payerKey;
        IX402Facilitator.Payment payment;
    }

    uint256 public constant TOKENS = 2;
    uint256 public constant PAYERS = 3;
    uint256 public constant RECIPIENTS = 4;
    uint256 public constant INITIAL_BALANCE = 1e15;
    /// @dev Low, so that it is reached.
    uint256 public constant FORWARD_LIMIT = 5e5;

    mapping(MockUSDC token => uint256) public stranded;
    mapping(MockUSDC token => uint256) public received;
    mapping(MockUSDC token => uint256) public released;
    mapping(MockUSDC token => uint256) public forwarded;
    mapping(MockUSDC token => mapping(address recipient => uint256)) public owed;
    mapping(MockUSDC token => mapping(address payer => uint256)) public spent;
    mapping(bytes32 key => bool) public paidOut;
    mapping(bytes32 key => bool) public neverToPay;

    mapping(string action => uint256) public successes;

    MockUSDC[] private _tokens;
    address[] private _payers;
    mapping(MockUSDC token => uint256) private _sentPlainly;
    Signed[] private _signed;
    mapping(bytes32 key => uint256) private _placeInSigned;
    Receipt[] private _receipts;
    uint256 private _nonces;

    /// @dev The transaction begins, with a token of its own.
    modifier transaction(uint256 seed) {
        usdc = _tokens[seed % TOKENS];
        vm.recordLogs();
        _;
    }

    constructor() {
        deploy();
        for (uint256 i = 0; i < PAYERS; ++i) {
            _payers.push(vm.addr(_payerKey(i)));
        }
        for (uint256 i = 0; i < TOKENS; ++i) {
            _tokens.push(deployUsdc("USD Coin", "2", ISSUER));
            vm.prank(ADMIN);
            facilitator.setForwardLimit(address(_tokens[i]), FORWARD_LIMIT);
            for (uint256 j = 0; j < PAYERS; ++j) {
                _tokens[i].mint(payerAt(j), INITIAL_BALANCE);
            }
        }
    }

    /// @notice The operator settles a new payment.
    function settleNew(uint256 seed) external transaction(seed) {
        _settle(_sign(seed), recipientAt(seed / 2));
    }

    /// @notice The operator settles a payment it has seen before, perhaps for another recipient.
    function settleSeen(uint256 seed) external transaction(seed) {
        if (_signed.length == 0) return;
        Signed memory seen = _seen(seed);
        bool used =
            seen.token.authorizationState(seen.payment.authorization.from, seen.payment.authorization.nonce);
        bool settled = _settle(seen, recipientAt(seed / 2));
        assertFalse(used && settled, "a used authorization was settled");
    }

    /// @notice The operator settles a batch of new, seen and forged payments for all kinds of recipients.
    function settleBatch(uint256 seed) external transaction(seed) {
        uint256 count = 1 + seed % 3;
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](count);
        for (uint256 i = 0; i < count; ++i) {
            groups[i].recipient = recipientAt(_mix(seed, i));
            groups[i].payments = new IX402Facilitator.Payment[](_mix(seed, i) / RECIPIENTS % 4);
            for (uint256 j = 0; j < groups[i].payments.length; ++j) {
                groups[i].payments[j] = _paymentForBatch(_mix(_mix(seed, i), j));
            }
        }
        vm.prank(OPERATOR);
        facilitator.settleBatch(address(usdc), groups);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < count; ++i) {
            for (uint256 j = 0; j < groups[i].payments.length; ++j) {
                _bookBatched(logs, groups, i, j);
            }
        }
        _collectReceipts(logs);
    }

    /// @notice A payer cancels an authorization, handed out before or not.
    function cancel(uint256 seed) external transaction(seed) {
        Signed memory signed = _newOrSeen(seed);
        IX402Facilitator.Authorization memory authorization = signed.payment.authorization;
        if (usdc.authorizationState(authorization.from, authorization.nonce)) return;
        usdc.cancelAuthorization(
            authorization.from,
            authorization.nonce,
            signCancellation(signed.payerKey, authorization.from, authorization.nonce)
        );
        neverToPay[_key(authorization)] = true;
        _collectReceipts(vm.getRecordedLogs());
        ++successes["cancel"];
    }

    /// @notice Somebody submits a payment straight to the token, before the operator does.
    function submitPaymentDirectly(uint256 seed) external transaction(seed) {
        Signed memory signed = _newOrSeen(seed);
        IX402Facilitator.Authorization memory authorization = signed.payment.authorization;
        try usdc.transferWithAuthorization(
            authorization.from,
            address(facilitator),
            authorization.value,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            signed.payment.signature
        ) {
            _bookStranded(authorization.from, authorization.value);
            _collectReceipts(vm.getRecordedLogs());
            ++successes["submitPaymentDirectly"];
        } catch {}
    }

    /// @notice A payer uses the nonce of a payment for a transfer to herself, and in the same transaction sends the
    /// facilitator the same value plainly: an authorization was used, the value came, and yet nothing is proven.
    function spendElsewhere(uint256 seed) external transaction(seed) {
        Signed memory signed = _newOrSeen(seed);
        IX402Facilitator.Authorization memory authorization = signed.payment.authorization;
        address from = authorization.from;
        if (usdc.authorizationState(from, authorization.nonce)) return;
        authorization.validBefore = block.timestamp + 1;
        usdc.transferWithAuthorization(
            from,
            from,
            authorization.value,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            sign(signed.payerKey, authorization, from)
        );
        neverToPay[_key(authorization)] = true;
        if (seed % 3 != 0) _sendPlainly(from, authorization.value);
        _collectReceipts(vm.getRecordedLogs());
        ++successes["spendElsewhere"];
    }

    /// @notice A payer sends tokens to the facilitator without any authorization.
    function sendPlainly(uint256 seed) external transaction(seed) {
        _sendPlainly(payerAt(seed / 2), _value(seed));
        _collectReceipts(vm.getRecordedLogs());
    }

    /// @notice The recoverer pays out what the logs prove, for a claim that may be older or newer.
    function recover(uint256 seed) external transaction(seed) {
        if (_receipts.length == 0) return;
        Receipt memory receipt = _receipts[seed % _receipts.length];
        address recipient = recipientAt(seed / 2);
        MockUSDC token = MockUSDC(receipt.token);
        bytes32 key = keccak256(abi.encode(receipt.token, receipt.payer, receipt.authorizationNonce));
        IX402Facilitator.Payment memory payment = _signed[_placeInSigned[key]].payment;
        bool withinLimit = receipt.value <= facilitator.availableToForward(receipt.token);
        vm.prank(RECOVERER);
        try facilitator.forwardReceived(receipt.token, payment.authorization, payment.signature, recipient) {
            assertTrue(withinLimit, "more than the limit was forwarded");
            forwarded[token] += receipt.value;
            _bookPayout(token, key, recipient, receipt.value);
            stranded[token] -= receipt.value;
            released[token] += receipt.value;
            ++successes["recover"];
        } catch {
            assertTrue(
                paidOut[key] || token.isBlacklisted(recipient) || !withinLimit,
                "a proven receipt was not paid out"
            );
            if (!withinLimit) ++successes["refuseByLimit"];
        }
    }

    /// @notice The admin returns what was sent plainly, and nothing else.
    function rescue(uint256 seed) external transaction(seed) {
        uint256 value = _sentPlainly[usdc];
        address recipient = recipientAt(seed / 2);
        if (value == 0 || usdc.isBlacklisted(recipient)) return;
        vm.prank(ADMIN);
        facilitator.announceRescue(address(usdc), recipient, value);
        vm.warp(block.timestamp + 2 days);
        vm.prank(ADMIN);
        facilitator.executeRescue(address(usdc), recipient, value);
        _sentPlainly[usdc] = 0;
        stranded[usdc] -= value;
        released[usdc] += value;
        owed[usdc][recipient] += value;
        ++successes["rescue"];
    }

    /// @notice The issuer of the token blacklists a recipient, or lets it go.
    function blacklist(uint256 seed) external transaction(seed) {
        address recipient = recipientAt(seed / 2);
        bool listed = usdc.isBlacklisted(recipient);
        vm.prank(ISSUER);
        if (listed) usdc.unBlacklist(recipient);
        else usdc.blacklist(recipient);
    }

    /// @notice A stranger with a good payment in hand tries every way to have it paid to himself.
    function stealPayment(uint256 seed) external transaction(seed) {
        IX402Facilitator.Payment memory payment = _newOrSeen(seed).payment;
        vm.prank(STRANGER);
        try facilitator.settle(address(usdc), payment.authorization, payment.signature, STRANGER) {
            assertTrue(false, "a stranger settled");
        } catch {}
        vm.prank(STRANGER);
        try facilitator.settleBatch(address(usdc), onlyGroup(group(STRANGER, payment))) {
            assertTrue(false, "a stranger settled a batch");
        } catch {}
        vm.prank(STRANGER);
        try facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, STRANGER) {
            assertTrue(false, "a stranger forwarded");
        } catch {}
    }

    /// @notice Time passes: authorizations expire.
    function wait(uint256 seed) external {
        vm.warp(block.timestamp + seed % 2 hours);
    }

    function tokenAt(uint256 index) external view returns (MockUSDC) {
        return _tokens[index];
    }

    function facilitatorAddress() external view returns (address) {
        return address(facilitator);
    }

    function payerAt(uint256 index) public view returns (address) {
        return _payers[index % PAYERS];
    }

    function recipientAt(uint256 index) public pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encode("recipient", index % RECIPIENTS)))));
    }

    function bystanders() external pure returns (address[] memory accounts) {
        accounts = new address[](6);
        (accounts[0], accounts[1], accounts[2]) = (ADMIN, OPERATOR, RECOVERER);
        (accounts[3], accounts[4], accounts[5]) = (PAUSER, ISSUER, STRANGER);
    }

    function _settle(Signed memory signed, address recipient) private returns (bool settled) {
        IX402Facilitator.Payment memory payment = signed.payment;
        vm.prank(OPERATOR);
        try facilitator.settle(address(signed.token), payment.authorization, payment.signature, recipient) {
            settled = true;
            _bookPayout(
                signed.token,
                keccak256(abi.encode(signed.token, payment.authorization.from, payment.authorization.nonce)),
                recipient,
                payment.authorization.value
            );
            spent[signed.token][payment.authorization.from] += payment.authorization.value;
            _collectReceipts(vm.getRecordedLogs());
            ++successes["settle"];
        } catch {}
    }

    function _bookBatched(Vm.Log[] memory logs, IX402Facilitator.Group[] memory groups, uint256 i, uint256 j)
        private
    {
        IX402Facilitator.Authorization memory authorization = groups[i].payments[j].authorization;
        // The same payment may stand in a batch twice; it is booked where it stands first.
        for (uint256 k = 0; k <= i; ++k) {
            for (uint256 l = 0; l < (k == i ? j : groups[k].payments.length); ++l) {
                if (groups[k].payments[l].authorization.nonce == authorization.nonce) return;
            }
        }
        (bool settled, address recipient) = _settledTo(logs, authorization);
        if (!settled) return;
        _bookPayout(usdc, _key(authorization), recipient, authorization.value);
        spent[usdc][authorization.from] += authorization.value;
        ++successes["settleBatch"];
    }

    /// @dev Recorded logs hold those of calls that were undone, too. So it takes the token's word that the
    /// authorization was used, and of several `Settled` the last.
    function _settledTo(Vm.Log[] memory logs, IX402Facilitator.Authorization memory authorization)
        private
        view
        returns (bool settled, address recipient)
    {
        if (!usdc.authorizationState(authorization.from, authorization.nonce)) {
            return (false, address(0));
        }
        for (uint256 i = 0; i < logs.length; ++i) {
            if (
                logs[i].topics[0] == IX402Facilitator.Settled.selector
                    && logs[i].topics[2] == bytes32(uint256(uint160(authorization.from)))
                    && logs[i].topics[3] == authorization.nonce
            ) {
                settled = true;
                (recipient,) = abi.decode(logs[i].data, (address, uint256));
            }
        }
    }

    function _paymentForBatch(uint256 seed) private returns (IX402Facilitator.Payment memory payment) {
        payment = _newOrSeen(seed).payment;
        if (seed % 7 == 0) payment.signature[10] ^= 0x01;
    }

    function _bookPayout(MockUSDC token, bytes32 key, address recipient, uint256 value) private {
        assertFalse(paidOut[key], "a key was paid out twice");
        assertFalse(neverToPay[key], "a cancelled authorization, or one spent elsewhere, was paid out");
        paidOut[key] = true;
        owed[token][recipient] += value;
    }

    function _bookStranded(address from, uint256 value) private {
        spent[usdc][from] += value;
        stranded[usdc] += value;
        received[usdc] += value;
    }

    function _sendPlainly(address from, uint256 value) private {
        vm.prank(from);
        usdc.transfer(address(facilitator), value);
        _sentPlainly[usdc] += value;
        _bookStranded(from, value);
        ++successes["sendPlainly"];
    }

    function _collectReceipts(Vm.Log[] memory logs) private {
        Receipt[] memory found = Recovery.receipts(logs, address(facilitator));
        for (uint256 i = 0; i < found.length; ++i) {
            _receipts.push(found[i]);
        }
    }

    function _newOrSeen(uint256 seed) private returns (Signed memory) {
        if (_signed.length == 0 || seed % 2 == 0) return _sign(seed);
        Signed memory seen = _seen(seed);
        return address(seen.token) == address(usdc) ? seen : _sign(seed);
    }

    function _seen(uint256 seed) private view returns (Signed memory) {
        return _signed[seed / 3 % _signed.length];
    }

    function _sign(uint256 seed) private returns (Signed memory signed) {
        uint256 key = _payerKey(seed / 5);
        bytes32 nonce = keccak256(abi.encode(++_nonces));
        signed = Signed({
            token: usdc,
            payerKey: key,
            payment: signPayment(key, authorize(payerAt(seed / 5), _value(seed), nonce))
        });
        _placeInSigned[_key(signed.payment.authorization)] = _signed.length;
        _signed.push(signed);
    }

    function _key(IX402Facilitator.Authorization memory authorization) private view returns (bytes32) {
        return keccak256(abi.encode(address(usdc), authorization.from, authorization.nonce));
    }

    function _payerKey(uint256 index) private pure returns (uint256) {
        return 0xa11ce + index % PAYERS;
    }

    function _value(uint256 seed) private pure returns (uint256) {
        return seed / 11 % 1e6;
    }

    function _mix(uint256 seed, uint256 index) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, index)));
    }
}
