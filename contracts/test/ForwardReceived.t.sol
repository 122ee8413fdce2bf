// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

contract ForwardReceivedTest is FacilitatorTest {
    function setUp() public override {
        super.setUp();
        submitDirectly(pay(PAYER_KEY, 10e6, "received"));
    }

    function test_paysOutWhatAnAuthorizationBroughtHere() public {
        vm.recordLogs();
        forward(payer, "received", 10e6, RECIPIENT);
        Vm.Log[] memory logs = vm.getRecordedLogs();

        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(usdc.balanceOf(address(facilitator)), 0, "facilitator");
        bytes32 key = keccak256(abi.encode(address(usdc), payer, bytes32("received")));
        assertTrue(facilitator.forwarded(key), "forwarded");
        Vm.Log memory log = logs[logs.length - 1];
        assertEq(log.topics[0], IX402Facilitator.Forwarded.selector, "event");
        assertEq(log.topics[1], bytes32(uint256(uint160(address(usdc)))), "token");
        assertEq(log.topics[2], bytes32(uint256(uint160(payer))), "payer");
        assertEq(log.topics[3], "received", "authorization nonce");
        assertEq(log.data, abi.encode(RECIPIENT, 10e6), "recipient and value");
    }

    function test_paysOutOnce() public {
        submitDirectly(pay(PAYER_KEY, 10e6, "other"));
        forward(payer, "received", 10e6, RECIPIENT);
        forwardFails(
            payer,
            "received",
            10e6,
            RECIPIENT,
            abi.encodeWithSelector(
                IX402Facilitator.AlreadyForwarded.selector, address(usdc), payer, bytes32("received")
            )
        );
        assertEq(usdc.balanceOf(address(facilitator)), 10e6, "stranded");
    }

    function test_refusesAnAuthorizationThatWasNotUsed() public {
        forwardFails(
            payer,
            "unused",
            10e6,
            RECIPIENT,
            abi.encodeWithSelector(
                IX402Facilitator.AuthorizationNotUsed.selector, address(usdc), payer, bytes32("unused")
            )
        );
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < recipients.length; ++i) {
            forwardFails(
                payer,
                "received",
                10e6,
                recipients[i],
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i])
            );
        }
    }

    function test_canBeTriedAgainAfterTheTokenRefused() public {
        vm.prank(ISSUER);
        usdc.blacklist(RECIPIENT);
        forwardFails(payer, "received", 10e6, RECIPIENT, errorData("Blacklistable: account is blacklisted"));
        vm.prank(ISSUER);
        usdc.unBlacklist(RECIPIENT);
        forward(payer, "received", 10e6, RECIPIENT);
    }

    /// @dev The contract cannot tell that the claims are wrong; that is what the log rule is for. What it does
    /// guarantee: all wrong claims together take what is stranded, and nothing of any settlement.
    function test_aDishonestRecovererCanTakeWhatIsStrandedAndNoMore() public {
        submitDirectly(pay(PAYER_KEY, 5e6, "also received"));
        usdc.cancelAuthorization(payer, "cancelled", signCancellation(PAYER_KEY, payer, "cancelled"));
        settle(pay(PAYER_KEY, 100e6, "settled"), RECIPIENT);
        uint256 stranded = 15e6;

        forwardFails(
            payer, "cancelled", stranded + 1, RECOVERER, errorData("ERC20: transfer amount exceeds balance")
        );
        forward(payer, "cancelled", stranded, RECOVERER);
        forwardFails(payer, "settled", 1, RECOVERER, errorData("ERC20: transfer amount exceeds balance"));
        forwardFails(payer, "received", 1, RECOVERER, errorData("ERC20: transfer amount exceeds balance"));
        assertEq(usdc.balanceOf(RECOVERER), stranded, "taken");

        settle(pay(PAYER_KEY, 100e6, "settled later"), RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 200e6, "settlements");
    }

    function testFuzz_aDishonestRecovererNeverTakesMoreThanIsStranded(
        uint256[8] memory values,
        uint256 stranded
    ) public {
        stranded = bound(stranded, 0, 100e6);
        fund(address(facilitator), stranded);
        stranded += 10e6;
        for (uint256 i = 0; i < values.length; ++i) {
            usdc.cancelAuthorization(payer, bytes32(i), signCancellation(PAYER_KEY, payer, bytes32(i)));
            vm.prank(RECOVERER);
            try facilitator.forwardReceived(
                address(usdc), payer, bytes32(i), bound(values[i], 0, 50e6), RECOVERER
            ) {}
                catch {}
        }
        assertEq(usdc.balanceOf(RECOVERER) + usdc.balanceOf(address(facilitator)), stranded, "taken and left");
    }

    function test_refusesATokenThatPaysAnotherAmount() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(address(facilitator), 1_000);
        token.transferWithAuthorization(payer, address(facilitator), 0, 0, 0, "nonce", "");
        Behaviour[2] memory behaviours = [Behaviour.Nothing, Behaviour.Surcharge];
        uint256[2] memory left = [uint256(1_000), 899];
        for (uint256 i = 0; i < behaviours.length; ++i) {
            token.behave(Behaviour.Correct, behaviours[i]);
            vm.prank(RECOVERER);
            vm.expectRevert(
                abi.encodeWithSelector(
                    IX402Facilitator.UnexpectedBalance.selector, address(token), 900, left[i]
                )
            );
            facilitator.forwardReceived(address(token), payer, "nonce", 100, RECIPIENT);
        }
    }

    function forward(address from, bytes32 authorizationNonce, uint256 value, address recipient) private {
        vm.prank(RECOVERER);
        facilitator.forwardReceived(address(usdc), from, authorizationNonce, value, recipient);
    }

    function forwardFails(
        address from,
        bytes32 authorizationNonce,
        uint256 value,
        address recipient,
        bytes memory reason
    ) private {
        vm.prank(RECOVERER);
        vm.expectRevert(reason);
        facilitator.forwardReceived(address(usdc), from, authorizationNonce, value, recipient);
    }
}
