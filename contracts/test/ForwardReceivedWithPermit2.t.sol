// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";

import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {Permit2Fixture} from "./utils/Permit2Fixture.sol";
import {Vm} from "./utils/Vm.sol";

/// @title Exact payments to the contract that somebody else submitted to the proxy of Permit2
contract ForwardReceivedWithPermit2Test is Permit2Fixture {
    uint256 private constant DEFAULT_LIMIT = 1_000e6;
    uint256 private constant NONCE = 1_000;

    IPermit2Settlement.Permit2Payment private received;

    function setUp() public {
        deployWithPermit2();
        received = submitted(10e6, NONCE);
    }

    function test_paysOutWhatAPaymentBroughtHere() public {
        vm.recordLogs();
        forward(received, RECIPIENT);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(token.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(token.balanceOf(address(facilitator)), 0, "facilitator");
        assertTrue(facilitator.forwarded(keccak256(abi.encode(PERMIT2, payer, bytes32(NONCE)))), "forwarded");
        assertEq(logs.length, 2, "events");
        assertEq(logs[0].topics[0], IPermit2Settlement.Permit2Forwarded.selector, "event");
        assertEq(logs[0].topics[1], bytes32(uint256(uint160(address(token)))), "token");
        assertEq(logs[0].topics[2], bytes32(uint256(uint160(payer))), "payer");
        assertEq(logs[0].topics[3], bytes32(NONCE), "nonce");
        assertEq(logs[0].data, abi.encode(RECIPIENT, 10e6), "recipient and value");
    }

    function test_paysOutAfterTheDeadline() public {
        vm.warp(received.deadline + 1);
        forward(received, RECIPIENT);
    }

    function test_paysOutOnce() public {
        submitted(10e6, 7);
        forward(received, RECIPIENT);
        forwardFails(received, about(IX402Facilitator.AlreadyForwarded.selector, received));
        assertEq(token.balanceOf(address(facilitator)), 10e6, "stranded");
    }

    /// @dev A nonce of Permit2 is used once, for whichever token.
    function test_paysOutOnceWhateverElseWasSignedUnderTheNonce() public {
        submitted(10e6, 7);
        forward(received, RECIPIENT);
        IPermit2Settlement.Permit2Payment memory again = signed(1, NONCE);
        forwardFails(again, about(IX402Facilitator.AlreadyForwarded.selector, again));
        token = MockERC20(deployCode("MockERC20", abi.encode("Other", "OTH", uint8(6))));
        token.mint(address(facilitator), 1e6);
        again = signed(1, NONCE);
        forwardFails(again, about(IX402Facilitator.AlreadyForwarded.selector, again));
    }

    /// @dev Nonces of EIP-3009 are others.
    function test_thatSameNonceOfAnAuthorizationIsAnother() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 5e6, bytes32(NONCE));
        submitDirectly(payment);
        vm.prank(RECOVERER);
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, RECIPIENT);
        forward(received, RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 5e6, "USDC");
        assertEq(token.balanceOf(RECIPIENT), 10e6, "token");
    }

    function test_refusesAPaymentThatWasNotUsed() public {
        IPermit2Settlement.Permit2Payment memory unused = signed(10e6, NONCE + 1);
        forwardFails(unused, about(IX402Facilitator.AuthorizationNotUsed.selector, unused));
    }

    function test_refusesWhatThePayerDidNotSign() public {
        token.mint(address(facilitator), 100e6);
        for (uint256 part = 0; part < 5; ++part) {
            IPermit2Settlement.Permit2Payment memory changed = received;
            if (part == 0) changed.permitted += 1;
            if (part == 1) changed.deadline += 1;
            if (part == 2) changed.validAfter -= 1;
            if (part == 3) changed.signature[10] ^= 0x01;
            if (part == 4) changed.signature = "";
            forwardFails(changed, about(IX402Facilitator.AuthorizationNotSigned.selector, changed));
        }
        MockERC20 first = token;
        token = MockERC20(deployCode("MockERC20", abi.encode("Other", "OTH", uint8(6))));
        token.mint(address(facilitator), 100e6);
        forwardFails(received, about(IX402Facilitator.AuthorizationNotSigned.selector, received));
        token = first;
    }

    /// @dev Neither can have brought anything here without this contract.
    function test_refusesPaymentsOfOtherWays() public {
        for (uint256 i = 1; i < 4; ++i) {
            IPermit2Settlement.Permit2Payment memory payment =
                adding(groupOf(i & 1 == 1, i & 2 == 2), 10e6, NONCE).payments[0];
            forwardFails(payment, about(IX402Facilitator.AuthorizationNotSigned.selector, payment));
        }
    }

    function test_asksAContractWallet() public {
        address wallet = deployCode("Mock1271Wallet", abi.encode(payer));
        fundAndApprove(token, wallet, 10e6);
        IPermit2Settlement.Permit2Group memory group =
            adding(groupOf(false, false), wallet, PAYER_KEY, 10e6, 1);
        submitToProxy(group);
        forward(group.payments[0], RECIPIENT);
        assertEq(token.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < recipients.length; ++i) {
            vm.prank(RECOVERER);
            vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i]));
            settlement.forwardReceivedWithPermit2(address(token), received, recipients[i]);
        }
    }

    function test_onlyRecoverersForwardAndNotWhilePaused() public {
        bytes32 role = facilitator.RECOVERER_ROLE();
        address[4] memory others = [ADMIN, OPERATOR, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(
                abi.encodeWithSelector(
                    IAccessControl.AccessControlUnauthorizedAccount.selector, others[i], role
                )
            );
            settlement.forwardReceivedWithPermit2(address(token), received, RECIPIENT);
        }
        vm.prank(PAUSER);
        facilitator.pause();
        forwardFails(received, abi.encodeWithSignature("EnforcedPause()"));
    }

    /// @dev One limit of a token for payments of both kinds.
    function test_countsAgainstTheLimitOfTheToken() public {
        token = MockERC20(address(usdc));
        vm.prank(payer);
        usdc.approve(address(PERMIT2), type(uint256).max);
        usdc.mint(payer, DEFAULT_LIMIT);
        IPermit2Settlement.Permit2Payment memory most = submitted(DEFAULT_LIMIT - 1, 1);
        forward(most, RECIPIENT);
        assertEq(facilitator.availableToForward(address(usdc)), 1, "available");
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 2, "nonce");
        submitDirectly(payment);
        vm.prank(RECOVERER);
        vm.expectRevert(limitExceeded(1, 2));
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, RECIPIENT);
        forwardFails(submitted(2, 2), limitExceeded(1, 2));
        forward(submitted(1, 3), RECIPIENT);
    }

    /// @dev A cancelled nonce looks like a used one. What a dishonest recoverer takes so is what is stranded, and no more.
    function test_aDishonestRecovererCanTakeWhatIsStrandedAndNoMore() public {
        settlePermit2(adding(groupOf(false, false), 4e6, 1));
        forward(signed(4e6, 1), RECOVERER);
        forward(cancelled(6e6, 2), RECOVERER);
        IPermit2Settlement.Permit2Payment memory more = cancelled(1, 3);
        vm.prank(RECOVERER);
        vm.expectRevert();
        settlement.forwardReceivedWithPermit2(address(token), more, RECOVERER);
        assertEq(token.balanceOf(RECOVERER), 10e6, "taken");
        settlePermit2(adding(groupOf(false, false), 100e6, 4));
        assertEq(token.balanceOf(RECIPIENT), 104e6, "settlements");
    }

    function testFuzz_aDishonestRecovererNeverTakesMoreThanIsStranded(
        uint256[8] memory values,
        uint256 stranded
    ) public {
        stranded = bound(stranded, 0, 100e6);
        token.mint(address(facilitator), stranded);
        stranded += 10e6;
        for (uint256 i = 0; i < values.length; ++i) {
            IPermit2Settlement.Permit2Payment memory claim = cancelled(bound(values[i], 0, 50e6), i);
            vm.prank(RECOVERER);
            try settlement.forwardReceivedWithPermit2(address(token), claim, RECOVERER) {} catch {}
        }
        assertEq(
            token.balanceOf(RECOVERER) + token.balanceOf(address(facilitator)), stranded, "taken and left"
        );
    }

    function signed(uint256 amount, uint256 nonce)
        private
        view
        returns (IPermit2Settlement.Permit2Payment memory)
    {
        return adding(groupOf(false, false), amount, nonce).payments[0];
    }

    function submitted(uint256 amount, uint256 nonce)
        private
        returns (IPermit2Settlement.Permit2Payment memory)
    {
        submitToProxy(adding(groupOf(false, false), amount, nonce));
        return signed(amount, nonce);
    }

    function cancelled(uint256 amount, uint256 nonce)
        private
        returns (IPermit2Settlement.Permit2Payment memory)
    {
        vm.prank(payer);
        PERMIT2.invalidateUnorderedNonces(nonce / 256, 1 << (nonce % 256));
        return signed(amount, nonce);
    }

    function forward(IPermit2Settlement.Permit2Payment memory payment, address recipient) private {
        vm.prank(RECOVERER);
        settlement.forwardReceivedWithPermit2(address(token), payment, recipient);
    }

    function forwardFails(IPermit2Settlement.Permit2Payment memory payment, bytes memory reason) private {
        vm.prank(RECOVERER);
        vm.expectRevert(reason);
        settlement.forwardReceivedWithPermit2(address(token), payment, RECIPIENT);
    }

    /// @dev An error that names a payment.
    function about(bytes4 selector, IPermit2Settlement.Permit2Payment memory payment)
        private
        view
        returns (bytes memory)
    {
        return abi.encodeWithSelector(selector, address(token), payment.payer, payment.nonce);
    }

    function limitExceeded(uint256 available, uint256 requested) private view returns (bytes memory) {
        return abi.encodeWithSelector(
            IX402Facilitator.ForwardLimitExceeded.selector, address(token), available, requested
        );
    }
}
