// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {
    IPermit2Approval,
    IPermit2Proxy,
    IUptoPermit2Proxy,
    UptoWitness
} from "../interfaces/IPermit2Proxies.sol";
import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {MockFeeToken} from "../mocks/MockFeeToken.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {MockUSDT} from "../mocks/MockUSDT.sol";
import {Permit2Fixture} from "./utils/Permit2Fixture.sol";
import {Vm} from "./utils/Vm.sol";

/// @title One payment that was signed for Permit2, of either scheme, through the contract and directly
/// @dev Funds of somebody else are stranded in the contract all the while; they must stay.
contract SettlePermit2Test is Permit2Fixture {
    uint256 private constant STRANDED = 500e6;

    function setUp() public {
        deployWithPermit2();
        token.mint(address(facilitator), STRANDED);
    }

    /// @dev Scheme and route number `index`.
    function way(uint256 index) private view returns (IPermit2Settlement.Permit2Group memory) {
        return groupOf(index & 1 == 1, index & 2 == 2);
    }

    function test_movesTheValueFromPayerToRecipient() public {
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2(adding(way(i), 10e6, i));
            assertEq(token.balanceOf(RECIPIENT), 10e6 * (i + 1), "recipient");
        }
        assertEq(token.balanceOf(payer), 960e6, "payer");
        assertStrandedStays();
    }

    function test_takesTheAmountOfUptoFromThePermittedOne() public {
        for (uint256 i = 1; i < 4; i += 2) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 100e6, i);
            group.payments[0].amount = 1;
            vm.recordLogs();
            settlePermit2(group);
            assertPermit2Settled(vm.getRecordedLogs(), group, 0);
            // What is left cannot be taken any more.
            group.payments[0].amount = 99e6;
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        }
        assertEq(token.balanceOf(RECIPIENT), 2, "recipient");
        assertEq(token.balanceOf(payer), 1_000e6 - 2, "payer");
        assertStrandedStays();
    }

    function test_emitsAnEventOfItsOwnForEachPayment() public {
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 10e6, 1_000 + i);
            vm.recordLogs();
            settlePermit2(group);
            Vm.Log[] memory logs = vm.getRecordedLogs();
            assertEq(logs.length, group.direct ? 3 : 4, "events");
            assertEq(logs[0].topics[0], IERC20.Transfer.selector, "first event");
            assertEq(logs[1].topics[0], IPermit2Proxy.Settled.selector, "second event");
            assertEq(logs[2].topics[0], IPermit2Settlement.Permit2Settled.selector, "third event");
            assertEq(logs[2].topics[1], bytes32(uint256(uint160(address(token)))), "token");
            assertEq(logs[2].topics[2], bytes32(uint256(uint160(payer))), "payer");
            assertEq(logs[2].topics[3], bytes32(1_000 + i), "nonce");
            assertEq(logs[2].data, abi.encode(RECIPIENT, 10e6), "recipient and value");
        }
    }

    function test_movesThePaymentsOfAGroupTogetherOrNone() public {
        for (uint256 i = 0; i < 4; ++i) {
            uint256 snapshot = vm.snapshotState();
            IPermit2Settlement.Permit2Group memory group =
                adding(adding(adding(way(i), 1e6, 1), 2e6, 2), 4e6, 3);
            settlePermit2(group);
            assertEq(token.balanceOf(RECIPIENT), 7e6, "recipient");
            vm.revertToState(snapshot);

            vm.prank(payer);
            PERMIT2.invalidateUnorderedNonces(0, 1 << 3);
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
            assertEq(token.balanceOf(payer), 1_000e6, "payer");
            assertEq(PERMIT2.nonceBitmap(payer, 0), 1 << 3, "nonces");
            vm.revertToState(snapshot);
        }
    }

    function test_takesNoPaymentsAtAll() public {
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2(way(i));
        }
    }

    function test_takesATokenThatReturnsNothing() public {
        MockUSDT usdt = MockUSDT(deployCode("MockUSDT", abi.encode("Tether USD", "USDT", uint8(6))));
        token = MockERC20(address(usdt));
        usdt.mint(payer, 40e6);
        vm.prank(payer);
        usdt.approve(address(PERMIT2), 40e6);
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2(adding(way(i), 10e6, i));
        }
        assertEq(usdt.balanceOf(RECIPIENT), 40e6, "recipient");
    }

    function test_takesUsdc() public {
        vm.prank(payer);
        usdc.approve(address(PERMIT2), type(uint256).max);
        token = MockERC20(address(usdc));
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2(adding(way(i), 10e6, i));
        }
        assertEq(usdc.balanceOf(RECIPIENT), 40e6, "recipient");
    }

    function test_approvesPermit2WithThePayersPermit() public {
        MockPermitToken permits =
            MockPermitToken(deployCode("MockPermitToken", abi.encode("Permits", "PMT", uint8(6))));
        token = MockERC20(address(permits));
        permits.mint(payer, 100e6);
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 10e6, i);
            settlePermit2Fails(group, errorData("TRANSFER_FROM_FAILED"));
            group.payments[0].approval = signApproval(permits, PAYER_KEY, 10e6);
            settlePermit2(group);
            assertEq(permits.allowance(payer, address(PERMIT2)), 0, "allowance");
        }
        assertEq(permits.balanceOf(RECIPIENT), 40e6, "recipient");
    }

    function test_usdcTakesPermitsToo() public {
        MockPermitToken permits = MockPermitToken(address(usdc));
        token = permits;
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].approval = signApproval(permits, PAYER_KEY, 10e6);
        settlePermit2(group);
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_aPermitThatSomebodySubmittedDoesNoHarm() public {
        MockPermitToken permits =
            MockPermitToken(deployCode("MockPermitToken", abi.encode("Permits", "PMT", uint8(6))));
        token = permits;
        permits.mint(payer, 100e6);
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].approval = signApproval(permits, PAYER_KEY, 10e6);
        (uint256 value, uint256 deadline, bytes32 r, bytes32 s, uint8 v) =
            abi.decode(group.payments[0].approval, (uint256, uint256, bytes32, bytes32, uint8));
        permits.permit(payer, address(PERMIT2), value, deadline, v, r, s);
        settlePermit2(group);
        assertEq(permits.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_thePermitMustBeOfThePermittedAmount() public {
        MockPermitToken permits =
            MockPermitToken(deployCode("MockPermitToken", abi.encode("Permits", "PMT", uint8(6))));
        token = permits;
        permits.mint(payer, 100e6);
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 10e6, i);
            group.payments[0].approval = signApproval(permits, PAYER_KEY, type(uint256).max);
            settlePermit2Fails(
                group, abi.encodeWithSelector(IPermit2Approval.Permit2612AmountMismatch.selector)
            );
        }
    }

    /// @dev The call of the proxy is made from the fields of the payment alone: here the approval brings along all arguments of
    /// another payer's payment, which would be paid to this recipient.
    function test_anApprovalCannotStandForThePaymentItself() public {
        uint256 victimKey = 0xb0b;
        fundAndApprove(token, vm.addr(victimKey), 10e6);
        IPermit2Settlement.Permit2Payment memory victim =
            adding(way(0), vm.addr(victimKey), victimKey, 10e6, 7).payments[0];
        bytes memory permit2612 = abi.encode(victim.permitted, NOW, bytes32(0), bytes32(0), uint8(27));
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 8);
        group.payments[0].approval = bytes.concat(
            permit2612,
            abi.encode(token, victim.permitted, victim.nonce, victim.deadline),
            abi.encode(victim.payer, facilitator, victim.validAfter, uint256(0x1a0)),
            abi.encode(uint256(65)),
            victim.signature,
            new bytes(31)
        );
        settlePermit2(group);
        assertEq(token.balanceOf(victim.payer), 10e6, "victim");
        assertEq(token.balanceOf(payer), 990e6, "payer");
    }

    function test_refusesAnApprovalThatIsTooShort() public {
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].approval = hex"00";
        settlePermit2Fails(group, abi.encodeWithSelector(IPermit2Approval.Permit2612AmountMismatch.selector));
    }

    function test_refusesWithTheReasonOfProxyOrPermit2() public {
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 10e6, i);
            group.payments[0].signature = signatureOver(0xb0b, digestOf(group, group.payments[0]));
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));

            group = adding(way(i), 10e6, i);
            group.payments[0].deadline = NOW - 1;
            signLast(group, PAYER_KEY);
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW - 1));

            group = adding(way(i), 10e6, i);
            group.payments[0].validAfter = NOW + 1;
            signLast(group, PAYER_KEY);
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2Proxy.PaymentTooEarly.selector));

            settlePermit2Fails(adding(way(i), 1_001e6, i), errorData("TRANSFER_FROM_FAILED"));
            settlePermit2Fails(
                adding(way(i), 0, i), abi.encodeWithSelector(IPermit2Proxy.InvalidAmount.selector)
            );

            group = adding(way(i), 10e6, i);
            group.direct = !group.direct;
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
            group.direct = !group.direct;
            group.upto = !group.upto;
            settlePermit2Fails(group, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        }
        assertEq(token.balanceOf(payer), 1_000e6, "payer");
    }

    function test_takesTheLastSecondOfAPaymentAndTheFirst() public {
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].validAfter = NOW;
        group.payments[0].deadline = NOW;
        signLast(group, PAYER_KEY);
        settlePermit2(group);
    }

    function test_refusesMoreThanThePayerPermitted() public {
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = adding(way(i), 10e6, i);
            group.payments[0].amount = 10e6 + 1;
            uint256 before = group.direct ? 0 : STRANDED;
            settlePermit2Fails(
                group,
                group.upto
                    ? abi.encodeWithSelector(IUptoPermit2Proxy.AmountExceedsPermitted.selector)
                    : unexpected(before + 10e6 + 1, before + 10e6)
            );
        }
        assertEq(token.balanceOf(payer), 1_000e6, "payer");
    }

    /// @dev Scheme "exact" takes the permitted amount and no other.
    function test_refusesLessThanAnExactPaymentPermits() public {
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].amount = 1;
        settlePermit2Fails(group, unexpected(STRANDED + 1, STRANDED + 10e6));
    }

    function test_refusesAnAmountThatCannotBeAdded() public {
        IPermit2Settlement.Permit2Group memory group = adding(way(0), 10e6, 0);
        group.payments[0].amount = type(uint256).max;
        settlePermit2Fails(group, abi.encodeWithSignature("Panic(uint256)", 0x11));
    }

    /// @dev Whether the fee is taken on the way here or on the way to the payee: nothing is charged.
    function test_aTokenThatKeepsAFeeCannotBePaidWith() public {
        token = MockFeeToken(deployCode("MockFeeToken", abi.encode("Fees", "FEE", uint8(6))));
        fundAndApprove(token, payer, 1_000e6);
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2Fails(adding(way(i), 10e6, i), unexpected(10e6, 9.9e6));
        }
        assertEq(token.balanceOf(payer), 1_000e6, "payer");
        assertEq(PERMIT2.nonceBitmap(payer, 0), 0, "nonces");
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < 4; ++i) {
            for (uint256 j = 0; j < recipients.length; ++j) {
                IPermit2Settlement.Permit2Group memory group = way(i);
                group.recipient = recipients[j];
                settlePermit2Fails(
                    adding(group, 10e6, i),
                    abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[j])
                );
            }
        }
    }

    /// @dev Nothing arrives where it was before.
    function test_nobodyPaysHimself() public {
        IPermit2Settlement.Permit2Group memory group = groupOf(false, true);
        group.recipient = payer;
        settlePermit2Fails(adding(group, 10e6, 0), unexpected(1_010e6, 1_000e6));
        // Through the contract it goes out and comes back.
        group = groupOf(false, false);
        group.recipient = payer;
        settlePermit2(adding(group, 10e6, 0));
        assertEq(token.balanceOf(payer), 1_000e6, "payer");
    }

    function test_refusesWhatIsNoToken() public {
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = way(i);
            group.token = STRANGER;
            settlePermit2Fails(
                adding(group, 10e6, i),
                abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, STRANGER)
            );
        }
    }

    /// @dev A call of an address without code succeeds.
    function test_refusesWhereThereAreNoProxiesOrNoPermit2() public {
        vm.etch(address(PERMIT2), "");
        for (uint256 i = 0; i < 4; ++i) {
            IPermit2Settlement.Permit2Group memory group = way(i);
            group.payments = new IPermit2Settlement.Permit2Payment[](1);
            group.payments[0].payer = payer;
            group.payments[0].permitted = 10e6;
            group.payments[0].amount = 10e6;
            group.payments[0].deadline = NOW;
            settlePermit2Fails(
                group, abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, address(token))
            );
        }
        deployOriginalPermit2();
        IPermit2Settlement.Permit2Group[4] memory groups;
        for (uint256 i = 0; i < 4; ++i) {
            groups[i] = adding(way(i), 10e6, i);
        }
        vm.etch(address(EXACT_PROXY), "");
        vm.etch(address(UPTO_PROXY), "");
        for (uint256 i = 0; i < 4; ++i) {
            uint256 before = groups[i].direct ? 0 : STRANDED;
            settlePermit2Fails(groups[i], unexpected(before + 10e6, before));
        }
    }

    function test_takesTheSignatureOfAContractWallet() public {
        address wallet = deployCode("Mock1271Wallet", abi.encode(payer));
        fundAndApprove(token, wallet, 40e6);
        for (uint256 i = 0; i < 4; ++i) {
            settlePermit2(adding(way(i), wallet, PAYER_KEY, 10e6, i));
        }
        assertEq(token.balanceOf(RECIPIENT), 40e6, "recipient");
    }

    function test_aWalletThatBurnsItsGasCostsNoMoreThanThePull() public {
        address wallet = deployCode("MockGasBurningWallet", "");
        fundAndApprove(token, wallet, 10e6);
        for (uint256 i = 0; i < 4; ++i) {
            bytes memory data =
                abi.encodeCall(settlement.settlePermit2, (adding(way(i), wallet, PAYER_KEY, 10e6, i)));
            uint256 gasBefore = gasleft();
            vm.prank(OPERATOR);
            (bool success,) = address(facilitator).call(data);
            assertFalse(success, "settled");
            assertTrue(gasBefore - gasleft() < facilitator.PULL_GAS() + 40_000, "gas used");
        }
    }

    /// @dev It reverts with 100,000 bytes.
    function test_theReasonOfAWalletIsCutShort() public {
        address wallet = address(new TalkativeWallet());
        fundAndApprove(token, wallet, 10e6);
        IPermit2Settlement.Permit2Group memory group = adding(way(0), wallet, PAYER_KEY, 10e6, 0);
        vm.prank(OPERATOR);
        (bool success, bytes memory reason) =
            address(facilitator).call(abi.encodeCall(settlement.settlePermit2, (group)));
        assertFalse(success, "settled");
        assertEq(reason.length, facilitator.MAX_REASON_LENGTH(), "bytes of the reason");
    }

    /// @dev Nobody but the contract settles an upto payment whose facilitator it is; an exact one is anybody's.
    function test_strangersCannotSettleUptoPayments() public {
        IPermit2Settlement.Permit2Payment memory payment = adding(way(1), 10e6, 0).payments[0];
        IPermit2.PermitTransferFrom memory permit =
            IPermit2.PermitTransferFrom(IPermit2.TokenPermissions(address(token), 10e6), 0, payment.deadline);
        UptoWitness memory witness =
            UptoWitness(address(facilitator), address(facilitator), payment.validAfter);
        address[2] memory callers = [STRANGER, OPERATOR];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.prank(callers[i]);
            vm.expectRevert(abi.encodeWithSelector(IUptoPermit2Proxy.UnauthorizedFacilitator.selector));
            UPTO_PROXY.settle(permit, 10e6, payer, witness, payment.signature);
        }
    }

    function test_aPaymentThatSomebodySubmittedIsUsed() public {
        submitToProxy(adding(way(0), 10e6, 0));
        settlePermit2Fails(adding(way(0), 10e6, 0), abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        submitToProxy(adding(way(2), 10e6, 1));
        settlePermit2Fails(adding(way(2), 10e6, 1), abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        assertEq(token.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(token.balanceOf(address(facilitator)), STRANDED + 10e6, "stranded");
    }

    function testFuzz_movesExactlyTheAmount(
        uint256 key,
        uint256 permitted,
        uint256 amount,
        uint256 nonce,
        uint256 index
    ) public {
        key = bound(key, 1, type(uint128).max);
        vm.assume(vm.addr(key) != RECIPIENT);
        permitted = bound(permitted, 1, type(uint128).max);
        IPermit2Settlement.Permit2Group memory group = way(index % 4);
        address owner = vm.addr(key);
        fundAndApprove(token, owner, permitted);
        uint256 held = token.balanceOf(owner);
        group = adding(group, owner, key, permitted, nonce);
        if (group.upto) group.payments[0].amount = amount = bound(amount, 1, permitted);
        else amount = permitted;
        settlePermit2(group);
        assertEq(token.balanceOf(RECIPIENT), amount, "recipient");
        assertEq(token.balanceOf(owner), held - amount, "payer");
        assertStrandedStays();
    }

    function testFuzz_refusesAnythingElseThanWhatWasSigned(uint256 index, uint256 field, uint256 change)
        public
    {
        IPermit2Settlement.Permit2Group memory group = adding(way(index % 4), 10e6, 1);
        IPermit2Settlement.Permit2Payment memory payment = group.payments[0];
        change = bound(change, 1, 5e6);
        field = bound(field, 0, 4);
        bool isAddress = field == 4;
        if (field == 0) payment.permitted += change;
        if (field == 1) payment.nonce += change;
        if (field == 2) payment.deadline += change;
        if (field == 3) payment.validAfter -= change;
        if (isAddress && group.direct) group.recipient = address(uint160(change));
        if (isAddress && !group.direct) payment.payer = address(uint160(change));
        vm.assume(!isAddress || address(uint160(change)).code.length == 0);
        payment.amount = payment.permitted;
        vm.prank(OPERATOR);
        vm.expectRevert();
        settlement.settlePermit2(group);
        assertEq(token.balanceOf(payer), 1_000e6, "payer");
    }

    function assertStrandedStays() private view {
        assertEq(token.balanceOf(address(facilitator)), STRANDED, "stranded");
    }

    function unexpected(uint256 expected, uint256 actual) private view returns (bytes memory) {
        return
            abi.encodeWithSelector(
                IX402Facilitator.UnexpectedBalance.selector, address(token), expected, actual
            );
    }
}

contract TalkativeWallet {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        assembly ("memory-safe") {
            revert(0, 100000)
        }
    }
}
