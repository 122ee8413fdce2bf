// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IPermit2} from "../../interfaces/IPermit2.sol";
import {IUptoPermit2Proxy, UptoWitness} from "../../interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "../../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../../mocks/Mock1271Wallet.sol";
import {MockERC20} from "../../mocks/MockERC20.sol";
import {MockGasBurningWallet} from "../../mocks/MockGasBurningWallet.sol";
import {ChargingToken} from "../utils/ChargingToken.sol";
import {Permit2Fixture} from "../utils/Permit2Fixture.sol";
import {Vm} from "../utils/Vm.sol";

/**
 * @title Everybody who touches payments that {Actors} does not have: signed for Permit2, or straight to the merchant
 * @dev Each public function is one action, in one transaction. Of three tokens one charges a payer a fee, and one is
 * USDC, which blacklists a recipient. Payers are two plain accounts, a contract wallet, and one that burns gas.
 *
 * | book       | meaning                                                            | changed by                          |
 * | ---------- | ------------------------------------------------------------------ | ----------------------------------- |
 * | `stranded` | what came to the facilitator outside of settlements, less what left so | direct submissions, plain transfers, recoveries |
 * | `owed`     | what a recipient was named for                                     | settlements, direct payments, recoveries |
 * | `spent`    | what left a payer's account                                        | everything a payer signs or does    |
 * | `paidOut`  | whether a key was paid out                                         | settlements, recoveries             |
 */
contract DirectActors is Permit2Fixture {
    uint256 public constant TOKENS = 3;
    uint256 public constant PAYERS = 4;
    uint256 public constant RECIPIENTS = 3;
    uint256 public constant INITIAL_BALANCE = 1e15;

    mapping(MockERC20 token => uint256) public stranded;
    mapping(MockERC20 token => mapping(address recipient => uint256)) public owed;
    mapping(MockERC20 token => mapping(address payer => uint256)) public spent;
    mapping(bytes32 key => bool) public paidOut;
    mapping(string action => uint256) public successes;

    MockERC20[] private _tokens;
    address[] private _payers;
    uint256 private _nonces;
    // Exact payments to the contract that somebody submitted, and their tokens.
    IPermit2Settlement.Permit2Payment[] private _received;
    address[] private _receivedTokens;

    modifier ofToken(uint256 seed) {
        token = _tokens[seed % TOKENS];
        vm.recordLogs();
        _;
    }

    constructor() {
        deployWithPermit2();
        _payers.push(vm.addr(_keyOf(0)));
        _payers.push(vm.addr(_keyOf(1)));
        _payers.push(deployCode("Mock1271Wallet", abi.encode(vm.addr(_keyOf(2)))));
        _payers.push(deployCode("MockGasBurningWallet", ""));
        _tokens.push(token);
        _tokens.push(new ChargingToken(_payers[1]));
        _tokens.push(MockERC20(address(usdc)));
        for (uint256 i = 0; i < TOKENS; ++i) {
            for (uint256 j = 0; j < PAYERS; ++j) {
                fundAndApprove(_tokens[i], _payers[j], INITIAL_BALANCE);
            }
            vm.prank(ADMIN);
            facilitator.setForwardLimit(address(_tokens[i]), 1e20);
        }
        vm.prank(ISSUER);
        usdc.blacklist(recipientAt(0));
    }

    /// @notice The operator settles the payments of a group, or none.
    function settleGroup(uint256 seed) external ofToken(seed) {
        IPermit2Settlement.Permit2Group memory group = _someGroup(seed);
        vm.prank(OPERATOR);
        try settlement.settlePermit2(group) {
            _book(vm.getRecordedLogs(), group, "settleGroup");
        } catch {}
    }

    /// @notice The operator settles a batch of groups of all kinds and tokens.
    function settleBatch(uint256 seed) external ofToken(seed) {
        IPermit2Settlement.Permit2Group[] memory groups = new IPermit2Settlement.Permit2Group[](1 + seed % 3);
        for (uint256 i = 0; i < groups.length; ++i) {
            token = _tokens[_mix(seed, i) % TOKENS];
            groups[i] = _someGroup(_mix(seed, i));
        }
        Vm.Log[] memory logs = settlePermit2Batch(groups);
        for (uint256 i = 0; i < groups.length; ++i) {
            _book(logs, groups[i], "settleBatch");
        }
    }

    /// @notice The operator moves authorizations straight to merchants, some of them forged.
    function transferBatch(uint256 seed) external ofToken(2) {
        IX402Facilitator.Group memory group;
        group.recipient = recipientAt(seed);
        group.payments = new IX402Facilitator.Payment[](seed / 3 % 4);
        for (uint256 i = 0; i < group.payments.length; ++i) {
            uint256 index = _mix(seed, i) % PAYERS;
            IX402Facilitator.Authorization memory authorization =
                authorize(_payers[index], _amount(_mix(seed, i)), bytes32(++_nonces));
            group.payments[i] =
                IX402Facilitator.Payment(authorization, sign(_keyOf(index), authorization, group.recipient));
            if (_mix(seed, i) % 5 == 0) authorization.value += 1;
        }
        vm.prank(OPERATOR);
        facilitator.transferBatch(address(usdc), onlyGroup(group));
        for (uint256 i = 0; i < group.payments.length; ++i) {
            IX402Facilitator.Authorization memory authorization = group.payments[i].authorization;
            if (!usdc.authorizationState(authorization.from, authorization.nonce)) continue;
            owed[token][group.recipient] += authorization.value;
            spent[token][authorization.from] += authorization.value;
            ++successes["transferBatch"];
        }
    }

    /// @notice Somebody submits an exact payment to the contract straight to the proxy.
    function submitDirectly(uint256 seed) external ofToken(seed) {
        uint256 index = seed / 3 % 3;
        IPermit2Settlement.Permit2Group memory group =
            adding(groupOf(false, false), _payers[index], _keyOf(index), _amount(seed), ++_nonces);
        if (_isUsed(group.payments[0])) return;
        uint256 before = token.balanceOf(address(facilitator));
        submitToProxy(group);
        uint256 came = token.balanceOf(address(facilitator)) - before;
        stranded[token] += came;
        spent[token][_payers[index]] += group.payments[0].permitted;
        ++successes["submitDirectly"];
        // What the token kept a fee of is proven by no log.
        if (came != group.payments[0].permitted) return;
        _received.push(group.payments[0]);
        _receivedTokens.push(address(token));
    }

    /// @notice A payer cancels the next nonce, before it is signed for.
    function cancel(uint256 seed) external {
        vm.prank(_payers[seed % PAYERS]);
        PERMIT2.invalidateUnorderedNonces((_nonces + 1) / 256, 1 << ((_nonces + 1) % 256));
    }

    /// @notice A payer sends tokens to the facilitator without any payment.
    function sendPlainly(uint256 seed) external ofToken(seed) {
        address from = _payers[seed / 3 % PAYERS];
        uint256 before = token.balanceOf(address(facilitator));
        vm.prank(from);
        token.transfer(address(facilitator), _amount(seed));
        stranded[token] += token.balanceOf(address(facilitator)) - before;
        spent[token][from] += _amount(seed);
    }

    /// @notice The recoverer pays out what somebody submitted; tried again, it is refused.
    function recover(uint256 seed) external {
        if (_received.length == 0) return;
        uint256 index = seed % _received.length;
        IPermit2Settlement.Permit2Payment memory payment = _received[index];
        token = MockERC20(_receivedTokens[index]);
        address recipient = recipientAt(seed / 2);
        vm.prank(RECOVERER);
        try settlement.forwardReceivedWithPermit2(address(token), payment, recipient) {
            _bookKey(payment);
            stranded[token] -= payment.permitted;
            owed[token][recipient] += payment.permitted;
            ++successes["recover"];
        } catch {}
    }

    /// @notice A stranger with good payments in hand tries every way to have them paid to himself.
    function steal(uint256 seed) external ofToken(seed) {
        IPermit2Settlement.Permit2Group memory group =
            adding(groupOf(seed % 2 == 0, false), _payers[0], _keyOf(0), _amount(seed), ++_nonces);
        group.recipient = STRANGER;
        bytes[5] memory calls = [
            abi.encodeCall(settlement.settlePermit2, (group)),
            abi.encodeCall(settlement.settlePermit2Batch, (onlyPermit2Group(group))),
            abi.encodeCall(
                settlement.forwardReceivedWithPermit2, (address(token), group.payments[0], STRANGER)
            ),
            abi.encodeCall(facilitator.transferBatch, (address(usdc), new IX402Facilitator.Group[](0))),
            abi.encodeCall(
                facilitator.deployAndSettle,
                (_payers[2], STRANGER, "", abi.encodeCall(settlement.settlePermit2, (group)))
            )
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.prank(STRANGER);
            (bool success,) = address(facilitator).call(calls[i]);
            assertFalse(success, "a stranger did what only roles may");
        }
        if (!group.upto) return;
        IPermit2Settlement.Permit2Payment memory payment = group.payments[0];
        vm.prank(STRANGER);
        (bool taken,) = address(UPTO_PROXY)
            .call(
                abi.encodeCall(
                    IUptoPermit2Proxy.settle,
                    (
                        IPermit2.PermitTransferFrom(
                            IPermit2.TokenPermissions(address(token), payment.permitted),
                            payment.nonce,
                            payment.deadline
                        ),
                        payment.amount,
                        payment.payer,
                        UptoWitness(address(facilitator), address(facilitator), payment.validAfter),
                        payment.signature
                    )
                )
            );
        assertFalse(taken, "a stranger settled an upto payment");
    }

    function tokenAt(uint256 index) external view returns (MockERC20) {
        return _tokens[index];
    }

    function payerAt(uint256 index) external view returns (address) {
        return _payers[index];
    }

    function facilitatorAddress() external view returns (address) {
        return address(facilitator);
    }

    function recipientAt(uint256 index) public pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encode("recipient", index % RECIPIENTS)))));
    }

    /// @dev Up to three payments, of which some are forged, too large, of a cancelled nonce, or for more than was permitted.
    function _someGroup(uint256 seed) private returns (IPermit2Settlement.Permit2Group memory group) {
        group = groupOf(seed & 8 != 0, seed & 16 != 0);
        group.recipient = recipientAt(seed / 32);
        for (uint256 i = 0; i < seed / 128 % 4; ++i) {
            uint256 own = _mix(seed, i);
            uint256 index = own % PAYERS;
            uint256 nonce = ++_nonces;
            if (own % 11 == 0) {
                vm.prank(_payers[index]);
                PERMIT2.invalidateUnorderedNonces(nonce / 256, 1 << (nonce % 256));
            }
            uint256 amount = own % 13 == 0 ? INITIAL_BALANCE + 1 : _amount(own);
            group = adding(group, _payers[index], _keyOf(index), amount, nonce);
            IPermit2Settlement.Permit2Payment memory payment = group.payments[i];
            if (group.upto) payment.amount = own / 17 % (amount + amount / 8);
            if (own % 7 == 0) payment.signature[10] ^= 0x01;
        }
    }

    /// @dev Recorded logs hold those of calls that were undone, too. So of several events of a payment the last one counts.
    function _book(Vm.Log[] memory logs, IPermit2Settlement.Permit2Group memory group, string memory action)
        private
    {
        for (uint256 i = 0; i < group.payments.length; ++i) {
            IPermit2Settlement.Permit2Payment memory payment = group.payments[i];
            Outcome memory result = permit2Outcome(logs, payment);
            if (!result.settled) continue;
            assertTrue(_isUsed(payment), "the nonce of a settled payment is not used");
            _bookKey(payment);
            assertTrue(result.value <= payment.permitted, "more than was permitted");
            MockERC20 asset = MockERC20(group.token);
            owed[asset][group.recipient] += result.value;
            spent[asset][payment.payer] += result.value;
            ++successes[action];
        }
    }

    function _isUsed(IPermit2Settlement.Permit2Payment memory payment) private view returns (bool) {
        uint256 word = PERMIT2.nonceBitmap(payment.payer, payment.nonce / 256);
        return word & (1 << (payment.nonce % 256)) != 0;
    }

    function _bookKey(IPermit2Settlement.Permit2Payment memory payment) private {
        bytes32 key = keccak256(abi.encode(payment.payer, payment.nonce));
        assertFalse(paidOut[key], "a payment was paid out twice");
        paidOut[key] = true;
    }

    function _keyOf(uint256 index) private pure returns (uint256) {
        return 0xa11ce00 + index;
    }

    function _amount(uint256 seed) private pure returns (uint256) {
        return 1 + seed / 11 % 1e6;
    }

    function _mix(uint256 seed, uint256 index) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, index)));
    }
}
