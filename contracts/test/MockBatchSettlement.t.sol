// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {IBatchSettlement, IDepositCollector} from "../interfaces/IBatchSettlement.sol";
import {IPermit2} from "../interfaces/IPermit2.sol";
import {IPermit2Approval} from "../interfaces/IPermit2Proxies.sol";
import {MockBatchSettlement} from "../mocks/MockBatchSettlement.sol";
import {MockFeeToken} from "../mocks/MockFeeToken.sol";
import {MockPermit2DepositCollector} from "../mocks/MockPermit2DepositCollector.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {Permit2Deployment} from "./utils/Permit2Deployment.sol";
import {UsdcDeployment} from "./utils/UsdcDeployment.sol";
import {Vm} from "./utils/Vm.sol";

/// @title What the escrow of scheme "batch-settlement" and its collectors do with each call and each fault of one
contract MockBatchSettlementTest is Permit2Deployment, UsdcDeployment {
    MockBatchSettlement private constant ESCROW =
        MockBatchSettlement(0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003);
    address private constant ERC3009_COLLECTOR = 0x4020806089470a89826cB9fB1f4059150b550004;
    address private constant PERMIT2_COLLECTOR = 0x4020425FAf3B746C082C2f942b4E5159887B0005;
    uint256 private constant PAYER_KEY = 0xa11ce;
    uint256 private constant AUTHORIZER_KEY = 0xb0b;
    uint256 private constant NOW = 1_800_000_000;
    address private constant RECEIVER = address(uint160(uint256(keccak256("receiver"))));
    address private constant STRANGER = address(uint160(uint256(keccak256("stranger"))));

    MockUSDC private usdc;
    address private payer;
    IBatchSettlement.ChannelConfig private config;
    bytes32 private id;
    uint256 private salts;

    function setUp() public {
        vm.warp(NOW);
        deployPermit2();
        vm.etch(address(ESCROW), deployedCodeOf("MockBatchSettlement"));
        vm.etch(ERC3009_COLLECTOR, deployedCodeOf("MockERC3009DepositCollector"));
        vm.etch(PERMIT2_COLLECTOR, deployedCodeOf("MockPermit2DepositCollector"));
        usdc = deployUsdc("USD Coin", "2", address(this));
        payer = vm.addr(PAYER_KEY);
        usdc.mint(payer, 1_000_000);
        config = IBatchSettlement.ChannelConfig({
            payer: payer,
            payerAuthorizer: payer,
            receiver: RECEIVER,
            receiverAuthorizer: vm.addr(AUTHORIZER_KEY),
            token: address(usdc),
            withdrawDelay: 900,
            salt: 0
        });
        id = ESCROW.getChannelId(config);
    }

    /// @dev Made outside of this repository, by the public client and by the original on a chain.
    function test_digestsAreThoseOfTheOriginal() public {
        vm.chainId(84_532);
        config.payer = config.payerAuthorizer = 0x70997970C51812dc3A010C7d01b50e0d17dc79C8;
        config.receiver = 0x209693Bc6afc0C5328bA36FaF03C514EF312287C;
        config.receiverAuthorizer = 0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC;
        config.token = 0x036CbD53842c5426634e7929541eC2318f3dCF7e;
        bytes32 channelId = 0x0407840585f69f8b271882e58918a16a51f5ff430ead65a9adc4a156979c22c4;
        assertEq(ESCROW.getChannelId(config), channelId, "channel");
        bytes32 voucherDigest = 0x5efc6c982187b381dd5a0dfb0fa807c27c2943e47f74147d666511b77859b9ab;
        assertEq(ESCROW.getVoucherDigest(channelId, 1_000), voucherDigest, "voucher");
        bytes32 refundDigest = 0xf8d1979cc95abab8b7056d03eec89ccc1a4e8aa580327bc10785ceb0924ff098;
        assertEq(ESCROW.getRefundDigest(channelId, 0, 99_300), refundDigest, "refund");
        assertEq(
            ESCROW.getClaimBatchDigest(rows(1_000, "", 700)),
            0xf57ec693156f8b40afe84d4b244eb0f85d8d37ca692a6a10b827d1a3fd146fd9,
            "claims"
        );
        bytes memory signature =
            hex"47c4221788a4320a7b15849b3064c849aacfe5e8c599f7070814c14f0c473a2667cc7c4c00c0ce76d8e41d00f113877ad83687819e7558ac100465a1ac4802be1c";
        assertEq(ECDSA.recover(voucherDigest, signature), config.payer, "payer");
    }

    function test_describesItself() public view {
        (bytes1 fields, string memory name, string memory version, uint256 chainId, address where,,) =
            ESCROW.eip712Domain();
        assertEq(bytes32(fields), bytes32(bytes1(0x0f)), "fields");
        assertEq(bytes(name), "x402 Batch Settlement", "name");
        assertEq(bytes(version), "1", "version");
        assertEq(chainId, block.chainid, "chain");
        assertEq(where, address(ESCROW), "address");
        assertEq(ESCROW.MIN_WITHDRAW_DELAY(), 900, "shortest");
        assertEq(ESCROW.MAX_WITHDRAW_DELAY(), 2_592_000, "longest");
        bytes32[2][6] memory hashes = [
            [
                ESCROW.CHANNEL_CONFIG_TYPEHASH(),
                0x1c9a06ceab9b0ebbd3301dc56c9111bb6d9af421356dc9ccb3b7084c755db308
            ],
            [ESCROW.VOUCHER_TYPEHASH(), 0x1e1bd6ff84c3e0d9029a292b212e039c0ca97ec497c55191a4a5874294609a69],
            [ESCROW.REFUND_TYPEHASH(), 0xbe23ad087435072cd69b49cc5b92de10ee610fce7ae0ab428307972d764bb216],
            [
                ESCROW.CLAIM_ENTRY_TYPEHASH(),
                0x30b9a0367528fca13c3e8ec6134c3113f1887ebe7a1ad61de0955aac288b0cf5
            ],
            [
                ESCROW.CLAIM_BATCH_TYPEHASH(),
                0x42bd57c010b870c2e96203c66341f28a6a19b4d56a74533a8eb5f706b9fd6d57
            ],
            [
                MockPermit2DepositCollector(PERMIT2_COLLECTOR).DEPOSIT_WITNESS_TYPEHASH(),
                0xba0000097e86dabe64178afe31109221193339a6861598f2133fcbdc92c84479
            ]
        ];
        for (uint256 i = 0; i < hashes.length; ++i) {
            assertEq(hashes[i][0], hashes[i][1], "typehash");
        }
        for (uint256 i = 0; i < 2; ++i) {
            address collector = i == 0 ? ERC3009_COLLECTOR : PERMIT2_COLLECTOR;
            assertEq(IDepositCollector(collector).x402BatchSettlement(), address(ESCROW), "escrow");
        }
    }

    function test_depositsByAnAuthorizationOfTheToken() public {
        vm.recordLogs();
        deposit(1_000);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 5, "events");
        assertEq(logs[3].topics[0], IBatchSettlement.ChannelCreated.selector, "created");
        assertEq(logs[3].data, abi.encode(config), "config");
        assertEq(logs[4].topics[0], IBatchSettlement.Deposited.selector, "deposited");
        assertEq(logs[4].data, abi.encode(1_000, 1_000), "amounts");
        assertChannel(1_000, 0);
        assertEq(usdc.balanceOf(address(ESCROW)), 1_000, "escrow");
        bytes32 slot = keccak256(abi.encode(id, uint256(2)));
        assertEq(vm.load(address(ESCROW), slot), bytes32(uint256(1_000)), "slot");

        vm.recordLogs();
        deposit(5);
        assertEq(vm.getRecordedLogs().length, 4, "events of the second");
        assertChannel(1_005, 0);
    }

    function test_anAuthorizationIsUsedOnceAndForItsChannel() public {
        bytes memory data = authorization(1_000, 7);
        ESCROW.deposit(config, 1_000, ERC3009_COLLECTOR, data);
        vm.expectRevert(errorData("FiatTokenV2: authorization is used or canceled"));
        ESCROW.deposit(config, 1_000, ERC3009_COLLECTOR, data);
        data = authorization(1_000, 8);
        config.salt = "other";
        vm.expectRevert(errorData("FiatTokenV2: invalid signature"));
        ESCROW.deposit(config, 1_000, ERC3009_COLLECTOR, data);
    }

    function test_depositsByPermit2() public {
        MockPermitToken token = usePermitToken();
        bytes memory data = permitData(500, "");
        vm.expectRevert(errorData("TRANSFER_FROM_FAILED"));
        ESCROW.deposit(config, 500, PERMIT2_COLLECTOR, data);
        bytes memory mismatch = abi.encodeWithSelector(IPermit2Approval.Permit2612AmountMismatch.selector);
        data = permitData(500, approval(token, 501));
        vm.expectRevert(mismatch);
        ESCROW.deposit(config, 500, PERMIT2_COLLECTOR, data);
        bytes memory approving = approval(token, 500);
        ESCROW.deposit(config, 500, PERMIT2_COLLECTOR, permitData(500, approving));
        assertChannel(500, 0);

        // A refused approval is passed over, with an event.
        vm.prank(payer);
        token.approve(address(PERMIT2), 500);
        data = permitData(500, approving);
        vm.recordLogs();
        ESCROW.deposit(config, 500, PERMIT2_COLLECTOR, data);
        assertEq(
            vm.getRecordedLogs()[0].topics[0],
            IPermit2Approval.EIP2612PermitFailedWithData.selector,
            "refused approval"
        );
        assertChannel(1_000, 0);
        data = permitData(500, "");
        config.salt = "other";
        vm.expectRevert(abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        ESCROW.deposit(config, 500, PERMIT2_COLLECTOR, data);
    }

    /// @dev A deposit with every fault, from which the first one is taken away again and again.
    function test_theFirstFaultOfADepositIsItsReason() public {
        IBatchSettlement.ChannelConfig memory good = config;
        config.payer = config.receiver = config.receiverAuthorizer = config.token = address(0);
        config.withdrawDelay = 899;
        for (uint256 i = 0; i < 4; ++i) {
            depositFails(0, address(0), "", IBatchSettlement.InvalidChannel.selector);
            if (i == 0) config.payer = good.payer;
            if (i == 1) config.receiver = good.receiver;
            if (i == 2) config.receiverAuthorizer = good.receiverAuthorizer;
        }
        config.token = good.token;
        depositFails(0, address(0), "", IBatchSettlement.WithdrawDelayOutOfRange.selector);
        config.withdrawDelay = 2_592_001;
        depositFails(0, address(0), "", IBatchSettlement.WithdrawDelayOutOfRange.selector);
        config.withdrawDelay = 900;
        depositFails(0, address(0), "", IBatchSettlement.ZeroDeposit.selector);
        depositFails(1, address(0), "", IBatchSettlement.InvalidCollector.selector);
        vm.expectRevert(bytes(""));
        ESCROW.deposit(config, 1, STRANGER, "");
        deposit(1);
        depositFails(type(uint128).max, STRANGER, "", IBatchSettlement.DepositOverflow.selector);
    }

    function test_refusesWhatDoesNotArriveInFull() public {
        config.token = deployCode("MockFeeToken", abi.encode("Fee", "FEE", uint8(6)));
        MockFeeToken(config.token).mint(payer, 1_000);
        vm.prank(payer);
        MockFeeToken(config.token).approve(address(PERMIT2), 1_000);
        id = ESCROW.getChannelId(config);
        depositFails(
            1_000, PERMIT2_COLLECTOR, permitData(1_000, ""), IBatchSettlement.DepositCollectionFailed.selector
        );
    }

    function test_onlyTheEscrowCollects() public {
        for (uint256 i = 0; i < 2; ++i) {
            address collector = i == 0 ? ERC3009_COLLECTOR : PERMIT2_COLLECTOR;
            vm.expectRevert(abi.encodeWithSelector(IDepositCollector.OnlyX402BatchSettlement.selector));
            IDepositCollector(collector).collect(payer, address(usdc), 1, id, "");
        }
    }

    function test_noCollectorGetsBackIn() public {
        ReentrantCollector collector = new ReentrantCollector();
        bytes[8] memory calls = [
            abi.encodeCall(ESCROW.deposit, (config, 1, ERC3009_COLLECTOR, "")),
            abi.encodeCall(ESCROW.claim, (rows(1, "", 1))),
            abi.encodeCall(ESCROW.claimWithSignature, (rows(1, "", 1), "")),
            abi.encodeCall(ESCROW.settle, (RECEIVER, address(usdc))),
            abi.encodeCall(ESCROW.refund, (config, 1)),
            abi.encodeCall(ESCROW.refundWithSignature, (config, 1, 0, "")),
            abi.encodeCall(ESCROW.initiateWithdraw, (config, 1)),
            abi.encodeCall(ESCROW.finalizeWithdraw, (config))
        ];
        bytes4 reason = ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector;
        for (uint256 i = 0; i < calls.length; ++i) {
            depositFails(1, address(collector), calls[i], reason);
        }
    }

    function test_claimsAndSettles() public {
        deposit(1_000);
        bytes memory signature = voucher(400);
        vm.expectEmit(address(ESCROW));
        emit IBatchSettlement.Claimed(id, RECEIVER, 300, 300);
        claim(rows(400, signature, 300));
        assertEq(usdc.balanceOf(RECEIVER), 0, "no token moves");
        ESCROW.claimWithSignature(rows(500, voucher(500), 500), batch(500, 500));
        assertChannel(1_000, 500);
        vm.expectEmit(address(ESCROW));
        emit IBatchSettlement.Settled(RECEIVER, address(usdc), STRANGER, 500);
        vm.prank(STRANGER);
        ESCROW.settle(RECEIVER, address(usdc));
        assertEq(usdc.balanceOf(RECEIVER), 500, "receiver");
        (uint128 claimed, uint128 settled) = ESCROW.receivers(RECEIVER, address(usdc));
        assertEq(claimed, 500, "claimed");
        assertEq(settled, 500, "settled");
    }

    /// @dev A success without an event is none.
    function test_doesNothingWhereThereIsNothingToDo() public {
        deposit(1_000);
        claim(rows(1_000, voucher(1_000), 1_000));
        ESCROW.settle(RECEIVER, address(usdc));
        vm.recordLogs();
        claim(rows(1_000, voucher(1_000), 1_000));
        claim(rows(0, hex"1234", 1_000));
        claim(rows(0, "", 0));
        ESCROW.settle(RECEIVER, address(usdc));
        vm.prank(RECEIVER);
        ESCROW.refund(config, 1);
        assertEq(vm.getRecordedLogs().length, 0, "events");
        assertEq(ESCROW.refundNonce(id), 1, "the nonce rises all the same");
    }

    function test_theFirstFaultOfAClaimIsItsReason() public {
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.EmptyBatch.selector));
        ESCROW.claim(new IBatchSettlement.VoucherClaim[](0));
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.EmptyBatch.selector));
        ESCROW.claimWithSignature(new IBatchSettlement.VoucherClaim[](0), "");
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.NotAuthorizedToClaim.selector));
        ESCROW.claim(rows(1, "", 2));
        bytes memory ofAnother = batch(2, 2);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.InvalidSignature.selector));
        ESCROW.claimWithSignature(rows(1, "", 2), ofAnother);
        claimFails(rows(1, "", 2), abi.encodeWithSelector(IBatchSettlement.ClaimExceedsCeiling.selector));
        claimFails(rows(2, "", 2), abi.encodeWithSelector(IBatchSettlement.ClaimExceedsBalance.selector));
        deposit(2);
        bytes memory signature = voucher(2);
        bytes memory short = new bytes(64);
        claimFails(rows(2, short, 2), abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 64));
        claimFails(rows(3, signature, 2), abi.encodeWithSelector(IBatchSettlement.InvalidSignature.selector));
        claimFails(rows(2, new bytes(65), 2), abi.encodeWithSelector(ECDSA.ECDSAInvalidSignature.selector));
    }

    /// @dev It stands after good rows: one bad row is the end of all of them.
    function test_aBatchHasOneAuthorizer() public {
        deposit(2);
        IBatchSettlement.VoucherClaim[] memory both = new IBatchSettlement.VoucherClaim[](2);
        both[0] = rows(2, voucher(2), 2)[0];
        config.receiverAuthorizer = STRANGER;
        both[1] = rows(0, "", 0)[0];
        bytes memory signature = signatureOver(AUTHORIZER_KEY, ESCROW.getClaimBatchDigest(both));
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.NotReceiverAuthorizer.selector));
        ESCROW.claimWithSignature(both, signature);
        assertChannel(2, 0);
    }

    function test_aPayerWithoutAnAuthorizerMayBeAContract() public {
        config.payerAuthorizer = address(0);
        id = ESCROW.getChannelId(config);
        deposit(10);
        claimFails(
            rows(1, new bytes(64), 1), abi.encodeWithSelector(IBatchSettlement.InvalidSignature.selector)
        );
        claim(rows(1, voucher(1), 1));
        vm.etch(payer, address(new YesWallet()).code);
        claim(rows(2, "yes", 2));
        assertChannel(10, 2);
    }

    function test_refunds() public {
        deposit(1_000);
        vm.prank(RECEIVER);
        vm.expectEmit(address(ESCROW));
        emit IBatchSettlement.Refunded(id, RECEIVER, 100);
        ESCROW.refund(config, 100);
        bytes memory signature = refundSignature(1, type(uint128).max);
        vm.recordLogs();
        vm.prank(STRANGER);
        ESCROW.refundWithSignature(config, type(uint128).max, 1, signature);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 3, "events");
        assertEq(logs[0].topics[0], IBatchSettlement.Refunded.selector, "refunded");
        assertEq(logs[0].data, abi.encode(900), "what was free");
        assertEq(logs[1].topics[0], IBatchSettlement.ChannelClosed.selector, "closed");
        assertEq(logs[2].topics[0], IERC20.Transfer.selector, "transfer");
        assertEq(usdc.balanceOf(payer), 1_000_000, "payer");
        assertEq(ESCROW.refundNonce(id), 2, "nonce");

        vm.recordLogs();
        deposit(1);
        assertEq(vm.getRecordedLogs()[3].topics[0], IBatchSettlement.ChannelCreated.selector, "created again");
    }

    function test_theFirstFaultOfARefundIsItsReason() public {
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.NotAuthorizedToRefund.selector));
        ESCROW.refund(config, 0);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.ZeroRefund.selector));
        vm.prank(RECEIVER);
        ESCROW.refund(config, 0);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.InvalidRefundNonce.selector));
        ESCROW.refundWithSignature(config, 0, 1, "");
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.InvalidSignature.selector));
        ESCROW.refundWithSignature(config, 0, 0, "");
        bytes memory signature = refundSignature(0, 0);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.ZeroRefund.selector));
        ESCROW.refundWithSignature(config, 0, 0, signature);
    }

    function test_withdrawsAfterTheDelayWhatIsStillFree() public {
        deposit(1_000);
        vm.startPrank(payer);
        vm.expectEmit(address(ESCROW));
        emit IBatchSettlement.WithdrawInitiated(id, 1_000, uint40(NOW + 900));
        ESCROW.initiateWithdraw(config, 1_000);
        vm.warp(NOW + 899);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.WithdrawDelayNotElapsed.selector));
        ESCROW.finalizeWithdraw(config);
        vm.stopPrank();
        claim(rows(300, voucher(300), 300));
        vm.warp(NOW + 900);
        vm.expectEmit(address(ESCROW));
        emit IBatchSettlement.WithdrawFinalized(id, payer, 700);
        vm.prank(payer);
        ESCROW.finalizeWithdraw(config);
        assertChannel(300, 300);
        claimFails(
            rows(500, voucher(500), 500),
            abi.encodeWithSelector(IBatchSettlement.ClaimExceedsBalance.selector)
        );
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.WithdrawalNotPending.selector));
        vm.prank(payer);
        ESCROW.finalizeWithdraw(config);
    }

    function test_finalizesAWithdrawalOfNothing() public {
        deposit(10);
        vm.prank(payer);
        ESCROW.initiateWithdraw(config, 10);
        claim(rows(10, voucher(10), 10));
        vm.warp(NOW + 900);
        vm.recordLogs();
        vm.prank(payer);
        ESCROW.finalizeWithdraw(config);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 1, "events");
        assertEq(logs[0].data, abi.encode(0), "amount");
    }

    function test_aRefundMakesAWithdrawalSmallerOrCancelsIt() public {
        deposit(1_000);
        vm.prank(payer);
        ESCROW.initiateWithdraw(config, 500);
        vm.prank(RECEIVER);
        ESCROW.refund(config, 300);
        (uint128 pending, uint40 since) = ESCROW.pendingWithdrawals(id);
        assertEq(pending, 200, "pending");
        assertEq(since, NOW, "since");
        vm.prank(RECEIVER);
        ESCROW.refund(config, 200);
        (pending, since) = ESCROW.pendingWithdrawals(id);
        assertEq(pending + since, 0, "cancelled");
        assertChannel(500, 0);
    }

    function test_theFirstFaultOfAWithdrawalIsItsReason() public {
        deposit(5);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.InvalidChannel.selector));
        ESCROW.initiateWithdraw(config, 0);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.NotAuthorizedToFinalizeWithdraw.selector));
        ESCROW.finalizeWithdraw(config);
        vm.startPrank(payer);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.NothingToWithdraw.selector));
        ESCROW.initiateWithdraw(config, 0);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.WithdrawAmountExceedsAvailable.selector));
        ESCROW.initiateWithdraw(config, 6);
        ESCROW.initiateWithdraw(config, 1);
        vm.expectRevert(abi.encodeWithSelector(IBatchSettlement.WithdrawalAlreadyPending.selector));
        ESCROW.initiateWithdraw(config, 6);
        vm.stopPrank();
    }

    function test_claimsAndRefundsInOneCall() public {
        deposit(1_000);
        bytes[] memory calls = new bytes[](2);
        calls[0] = abi.encodeCall(ESCROW.claimWithSignature, (rows(300, voucher(300), 300), batch(300, 300)));
        calls[1] = abi.encodeCall(
            ESCROW.refundWithSignature, (config, type(uint128).max, 0, refundSignature(0, type(uint128).max))
        );
        vm.prank(STRANGER);
        ESCROW.multicall(calls);
        assertChannel(300, 300);
        assertEq(usdc.balanceOf(payer), 999_700, "payer");
    }

    function deposit(uint128 amount) private {
        ESCROW.deposit(config, amount, ERC3009_COLLECTOR, authorization(amount, ++salts));
    }

    function depositFails(uint128 amount, address collector, bytes memory data, bytes4 reason) private {
        vm.expectRevert(abi.encodeWithSelector(reason));
        ESCROW.deposit(config, amount, collector, data);
    }

    function claim(IBatchSettlement.VoucherClaim[] memory claims) private {
        vm.prank(RECEIVER);
        ESCROW.claim(claims);
    }

    function claimFails(IBatchSettlement.VoucherClaim[] memory claims, bytes memory reason) private {
        vm.expectRevert(reason);
        vm.prank(RECEIVER);
        ESCROW.claim(claims);
    }

    function assertChannel(uint256 balance, uint256 claimed) private view {
        (uint128 actual, uint128 totalClaimed) = ESCROW.channels(id);
        assertEq(actual, balance, "channel's balance");
        assertEq(totalClaimed, claimed, "channel's claimed total");
    }

    function rows(uint128 ceiling, bytes memory signature, uint128 total)
        private
        view
        returns (IBatchSettlement.VoucherClaim[] memory claims)
    {
        claims = new IBatchSettlement.VoucherClaim[](1);
        claims[0] = IBatchSettlement.VoucherClaim(IBatchSettlement.Voucher(config, ceiling), signature, total);
    }

    function voucher(uint128 ceiling) private view returns (bytes memory) {
        return signatureOver(PAYER_KEY, ESCROW.getVoucherDigest(id, ceiling));
    }

    function batch(uint128 ceiling, uint128 total) private view returns (bytes memory) {
        return signatureOver(AUTHORIZER_KEY, ESCROW.getClaimBatchDigest(rows(ceiling, "", total)));
    }

    function refundSignature(uint256 nonce, uint128 amount) private view returns (bytes memory) {
        return signatureOver(AUTHORIZER_KEY, ESCROW.getRefundDigest(id, nonce, amount));
    }

    /// @dev The collector is the payee, and the nonce names the channel.
    function authorization(uint256 amount, uint256 salt) private view returns (bytes memory) {
        bytes32 structHash = keccak256(
            abi.encode(
                usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(),
                payer,
                ERC3009_COLLECTOR,
                amount,
                0,
                NOW + 1_000,
                keccak256(abi.encode(id, salt))
            )
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), structHash));
        return abi.encode(0, NOW + 1_000, salt, signatureOver(PAYER_KEY, digest));
    }

    function usePermitToken() private returns (MockPermitToken token) {
        token = MockPermitToken(deployCode("MockPermitToken", abi.encode("Test", "TST", uint8(6))));
        token.mint(payer, 10_000);
        config.token = address(token);
        id = ESCROW.getChannelId(config);
    }

    function permitData(uint256 amount, bytes memory approving) private returns (bytes memory) {
        uint256 nonce = ++salts;
        bytes32 digest = permit2Digest(
            IPermit2.PermitTransferFrom(IPermit2.TokenPermissions(config.token, amount), nonce, NOW),
            PERMIT2_COLLECTOR,
            keccak256(abi.encode(keccak256("DepositWitness(bytes32 channelId)"), id)),
            "DepositWitness witness)DepositWitness(bytes32 channelId)TokenPermissions(address token,uint256 amount)"
        );
        return abi.encode(nonce, NOW, signatureOver(PAYER_KEY, digest), approving);
    }

    function approval(MockPermitToken token, uint256 value) private view returns (bytes memory) {
        bytes32 typeHash =
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 structHash =
            keccak256(abi.encode(typeHash, payer, address(PERMIT2), value, token.nonces(payer), NOW));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, digest);
        return abi.encode(value, NOW, v, r, s);
    }
}

/// @dev Calls the escrow with the data of its deposit, and reverts as that does.
contract ReentrantCollector {
    function collect(address, address, uint256, bytes32, bytes calldata data) external {
        (bool success, bytes memory result) = msg.sender.call(data);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(result, 0x20), mload(result))
        }
    }
}

contract YesWallet {
    function isValidSignature(bytes32, bytes calldata signature) external pure returns (bytes4) {
        return keccak256(signature) == keccak256("yes") ? bytes4(0x1626ba7e) : bytes4(0);
    }
}
