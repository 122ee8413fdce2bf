// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {Mock7702Delegate} from "../mocks/Mock7702Delegate.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

contract ForwardReceivedTest is FacilitatorTest {
    uint256 private constant DEFAULT_LIMIT = 1_000e6;

    IX402Facilitator.Payment private received;

    function setUp() public override {
        super.setUp();
        received = pay(PAYER_KEY, 10e6, "received");
        submitDirectly(received);
    }

    function test_paysOutWhatAnAuthorizationBroughtHere() public {
        vm.recordLogs();
        forward(received, RECIPIENT);
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

    function test_paysOutAfterTheAuthorizationHasExpired() public {
        vm.warp(received.authorization.validBefore + 1);
        forward(received, RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_paysOutOnce() public {
        submitDirectly(pay(PAYER_KEY, 10e6, "other"));
        forward(received, RECIPIENT);
        forwardFails(received, RECIPIENT, about(IX402Facilitator.AlreadyForwarded.selector, received));
        assertEq(usdc.balanceOf(address(facilitator)), 10e6, "stranded");
    }

    /// @dev The payer signed twice under one nonce.
    function test_paysOutOnceWhateverElseWasSignedUnderTheNonce() public {
        submitDirectly(pay(PAYER_KEY, 10e6, "other"));
        forward(received, RECIPIENT);
        IX402Facilitator.Payment memory again = pay(PAYER_KEY, 1, "received");
        forwardFails(again, RECIPIENT, about(IX402Facilitator.AlreadyForwarded.selector, again));
    }

    function test_refusesAnAuthorizationThatWasNotUsed() public {
        IX402Facilitator.Payment memory unused = pay(PAYER_KEY, 10e6, "unused");
        forwardFails(unused, RECIPIENT, about(IX402Facilitator.AuthorizationNotUsed.selector, unused));
    }

    function test_refusesWhatThePayerDidNotSign() public {
        for (uint256 part = 0; part < 5; ++part) {
            IX402Facilitator.Payment memory changed = received;
            IX402Facilitator.Authorization memory authorization = changed.authorization;
            if (part == 0) authorization.value += 1;
            if (part == 1) authorization.value -= 1;
            if (part == 2) authorization.validAfter -= 1;
            if (part == 3) authorization.validBefore += 1;
            if (part == 4) changed.signature[10] ^= 0x01;
            refusesAsNotSigned(changed);
        }
    }

    function test_refusesAnotherPayersSignature() public {
        uint256 otherKey = 0xb0b;
        address other = vm.addr(otherKey);
        usdc.mint(other, 10e6);
        IX402Facilitator.Payment memory payment = pay(otherKey, 10e6, "received");
        submitDirectly(payment);
        payment.signature = received.signature;
        refusesAsNotSigned(payment);
    }

    function test_refusesASignatureOverATransferToSomebodyElse() public {
        IX402Facilitator.Authorization memory authorization = authorize(payer, 10e6, "elsewhere");
        bytes memory signature = sign(PAYER_KEY, authorization, STRANGER);
        usdc.transferWithAuthorization(
            payer,
            STRANGER,
            authorization.value,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            signature
        );
        refusesAsNotSigned(IX402Facilitator.Payment({authorization: authorization, signature: signature}));
    }

    function test_refusesASignatureForAnotherToken() public {
        MockUSDC first = usdc;
        usdc = deployUsdc("USD Coin", "2", ISSUER);
        usdc.mint(payer, 10e6);
        submitDirectly(pay(PAYER_KEY, 10e6, "received"));
        bytes memory ofOtherToken = received.signature;
        refusesAsNotSigned(
            IX402Facilitator.Payment({authorization: received.authorization, signature: ofOtherToken})
        );
        usdc = first;
    }

    function test_refusesSignaturesThatAreNone() public {
        bytes[4] memory signatures =
            [bytes(""), hex"00", new bytes(65), bytes.concat(received.signature, hex"00")];
        for (uint256 i = 0; i < signatures.length; ++i) {
            refusesAsNotSigned(
                IX402Facilitator.Payment({authorization: received.authorization, signature: signatures[i]})
            );
        }
    }

    /// @dev Nobody has the key of the zero address; a recovery that fails gives it.
    function test_refusesTheZeroAddressAsPayer() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(address(0), 10e6);
        IX402Facilitator.Payment memory payment = unsigned(address(0), 10e6, "nobody");
        token.transferWithAuthorization(address(0), address(facilitator), 10e6, 0, 0, "nobody", "");
        bytes[2] memory signatures = [bytes(""), new bytes(65)];
        for (uint256 i = 0; i < signatures.length; ++i) {
            vm.prank(RECOVERER);
            vm.expectRevert(
                abi.encodeWithSelector(
                    IX402Facilitator.AuthorizationNotSigned.selector,
                    address(token),
                    address(0),
                    bytes32("nobody")
                )
            );
            facilitator.forwardReceived(address(token), payment.authorization, signatures[i], RECIPIENT);
        }
    }

    function test_asksAContractWallet() public {
        (address wallet, IX402Facilitator.Payment memory payment) = submitFromWallet();
        IX402Facilitator.Payment memory forged = signPayment(0xb0b, authorize(wallet, 5e6, "wallet"));
        refusesAsNotSigned(forged);
        forward(payment, RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 5e6, "recipient");
    }

    /// @dev Such value is left to a rescue.
    function test_refusesWhatAWalletStandsByNoMore() public {
        (address wallet, IX402Facilitator.Payment memory payment) = submitFromWallet();
        vm.store(wallet, 0, bytes32(uint256(uint160(STRANGER))));
        refusesAsNotSigned(payment);
        // Nor when its code is gone.
        vm.etch(wallet, "");
        refusesAsNotSigned(payment);

        vm.prank(ADMIN);
        facilitator.announceRescue(address(usdc), RECIPIENT, 5e6);
        vm.warp(block.timestamp + facilitator.RESCUE_DELAY());
        vm.prank(ADMIN);
        facilitator.executeRescue(address(usdc), RECIPIENT, 5e6);
        assertEq(usdc.balanceOf(RECIPIENT), 5e6, "recipient");
    }

    /// @dev EIP-7702: the code at the payer's address is asked from then on, even where the payer's key signed before.
    function test_asksTheCodeOfAnAccountThatHasGotSome() public {
        vm.etch(payer, deployCode("Mock1271Wallet", abi.encode(payer)).code);
        refusesAsNotSigned(received);
        vm.etch(payer, deployCode("Mock7702Delegate", "").code);
        forward(received, RECIPIENT);
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < recipients.length; ++i) {
            forwardFails(
                received,
                recipients[i],
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i])
            );
        }
    }

    function test_canBeTriedAgainAfterTheTokenRefused() public {
        vm.prank(ISSUER);
        usdc.blacklist(RECIPIENT);
        forwardFails(received, RECIPIENT, errorData("Blacklistable: account is blacklisted"));
        assertEq(facilitator.availableToForward(address(usdc)), DEFAULT_LIMIT, "available");
        vm.prank(ISSUER);
        usdc.unBlacklist(RECIPIENT);
        forward(received, RECIPIENT);
    }

    /// @dev The contract cannot tell a cancelled authorization, a settled one, and one whose nonce was used for
    /// another from one that came straight to the token; that is what the log rule is for. What it does guarantee: all
    /// wrong claims together take what is stranded, and nothing of any settlement.
    function test_aDishonestRecovererCanTakeWhatIsStrandedAndNoMore() public {
        IX402Facilitator.Payment memory settled = pay(PAYER_KEY, 4e6, "settled");
        settle(settled, RECIPIENT);
        IX402Facilitator.Payment memory reused = pay(PAYER_KEY, 5e6, "reused");
        submitDirectly(pay(PAYER_KEY, 0, "reused"));

        forward(settled, RECOVERER);
        forward(reused, RECOVERER);
        forwardFails(
            cancelled(2e6, "too much"), RECOVERER, errorData("ERC20: transfer amount exceeds balance")
        );
        forward(cancelled(1e6, "the rest"), RECOVERER);
        forwardFails(received, RECIPIENT, errorData("ERC20: transfer amount exceeds balance"));
        assertEq(usdc.balanceOf(RECOVERER), 10e6, "taken");

        settle(pay(PAYER_KEY, 100e6, "settled later"), RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 104e6, "settlements");
    }

    /// @dev A limit at once, and one more in the day that follows.
    function test_aDishonestRecovererCanTakeTheLimitADayAndNoMore() public {
        usdc.mint(address(facilitator), 10 * DEFAULT_LIMIT);
        uint256 half = DEFAULT_LIMIT / 2;
        forward(cancelled(DEFAULT_LIMIT, "all"), RECOVERER);
        forwardFails(cancelled(1, "one more"), RECOVERER, limitExceeded(0, 1));
        vm.warp(NOW + 12 hours);
        forwardFails(cancelled(half + 1, "too early"), RECOVERER, limitExceeded(half, half + 1));
        forward(cancelled(half, "half"), RECOVERER);
        vm.warp(NOW + 24 hours);
        forward(cancelled(half, "other half"), RECOVERER);
        vm.warp(NOW + 30 days);
        forwardFails(
            cancelled(DEFAULT_LIMIT + 1, "saved up"),
            RECOVERER,
            limitExceeded(DEFAULT_LIMIT, DEFAULT_LIMIT + 1)
        );
        assertEq(usdc.balanceOf(RECOVERER), 2 * DEFAULT_LIMIT, "taken");
    }

    /// @dev In any stretch of time: the limit, and what comes back of it meanwhile.
    function testFuzz_aDishonestRecovererNeverTakesMoreThanTheLimit(
        uint256[12] memory values,
        uint256[12] memory pauses,
        uint256 limit
    ) public {
        limit = bound(limit, 1, 50e6);
        setLimit(limit);
        usdc.mint(address(facilitator), 1_000e6);
        uint256[12] memory taken;
        uint256[12] memory times;
        for (uint256 i = 0; i < values.length; ++i) {
            vm.warp(block.timestamp + bound(pauses[i], 0, 16 hours));
            times[i] = block.timestamp;
            uint256 available = facilitator.availableToForward(address(usdc));
            IX402Facilitator.Payment memory claim =
                cancelled(bound(values[i], 0, limit + limit / 4), bytes32(i));
            uint256 value = claim.authorization.value;
            if (value > available) {
                forwardFails(claim, RECOVERER, limitExceeded(available, value));
            } else {
                forward(claim, RECOVERER);
                taken[i] = value;
            }
            uint256 sum = 0;
            for (uint256 j = i + 1; j > 0; --j) {
                sum += taken[j - 1];
                uint256 back = limit * (block.timestamp - times[j - 1]) / 24 hours;
                assertTrue(sum <= limit + back, "more than the limit was taken");
            }
        }
    }

    function testFuzz_aDishonestRecovererNeverTakesMoreThanIsStranded(
        uint256[8] memory values,
        uint256 stranded
    ) public {
        stranded = bound(stranded, 0, 100e6);
        fund(address(facilitator), stranded);
        stranded += 10e6;
        for (uint256 i = 0; i < values.length; ++i) {
            IX402Facilitator.Payment memory claim = cancelled(bound(values[i], 0, 50e6), bytes32(i));
            vm.prank(RECOVERER);
            try facilitator.forwardReceived(address(usdc), claim.authorization, claim.signature, RECOVERER) {}
                catch {}
        }
        assertEq(usdc.balanceOf(RECOVERER) + usdc.balanceOf(address(facilitator)), stranded, "taken and left");
    }

    function testFuzz_nothingIsPaidOutThatThePayerDidNotSign(
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes calldata signature
    ) public {
        usdc.mint(address(facilitator), 100e6);
        IX402Facilitator.Payment memory claim = received;
        claim.authorization.value = value;
        claim.authorization.validAfter = validAfter;
        claim.authorization.validBefore = validBefore;
        refusesAsNotSigned(claim);
        claim.signature = signature;
        refusesAsNotSigned(claim);
        claim.authorization = received.authorization;
        refusesAsNotSigned(claim);
    }

    function test_theLimitIsOneThousandWholeTokensUntilItIsSet() public {
        assertEq(facilitator.forwardLimit(address(usdc)), DEFAULT_LIMIT, "limit");
        assertEq(facilitator.availableToForward(address(usdc)), DEFAULT_LIMIT, "available");
        forward(received, RECIPIENT);
        assertEq(facilitator.forwardLimit(address(usdc)), DEFAULT_LIMIT, "limit after a forward");
        assertEq(facilitator.availableToForward(address(usdc)), DEFAULT_LIMIT - 10e6, "available after");

        usdc.mint(address(facilitator), DEFAULT_LIMIT);
        forwardFails(
            cancelled(DEFAULT_LIMIT - 10e6 + 1, "too much"),
            RECOVERER,
            limitExceeded(DEFAULT_LIMIT - 10e6, DEFAULT_LIMIT - 10e6 + 1)
        );
        forward(cancelled(DEFAULT_LIMIT - 10e6, "the rest"), RECOVERER);
        vm.warp(NOW + 24 hours);
        assertEq(facilitator.availableToForward(address(usdc)), DEFAULT_LIMIT, "available a day later");
    }

    function test_theAdminSetsTheLimit() public {
        vm.expectEmit(address(facilitator));
        emit IX402Facilitator.ForwardLimitSet(address(usdc), 9e6);
        setLimit(9e6);
        assertEq(facilitator.forwardLimit(address(usdc)), 9e6, "limit");
        forwardFails(received, RECIPIENT, limitExceeded(9e6, 10e6));
        setLimit(10e6);
        forward(received, RECIPIENT);
        assertEq(facilitator.availableToForward(address(usdc)), 0, "available");
    }

    function test_whatWasForwardedCountsAgainstANewLimit() public {
        forward(received, RECIPIENT);
        setLimit(25e6);
        assertEq(facilitator.availableToForward(address(usdc)), 15e6, "after raising it to 25");
        setLimit(4e6);
        assertEq(facilitator.availableToForward(address(usdc)), 0, "after lowering it to 4");
        vm.warp(NOW + 48 hours);
        assertEq(facilitator.availableToForward(address(usdc)), 2e6, "when 8 have come back");
        vm.warp(NOW + 60 hours);
        assertEq(facilitator.availableToForward(address(usdc)), 4e6, "when all have");
    }

    function test_whatHasComeBackStaysWhenTheLimitChanges() public {
        setLimit(10e6);
        forward(received, RECIPIENT);
        vm.warp(NOW + 12 hours);
        setLimit(100e6);
        assertEq(facilitator.availableToForward(address(usdc)), 95e6, "available");
    }

    function test_aLimitOfZeroStopsForwards() public {
        setLimit(0);
        assertEq(facilitator.forwardLimit(address(usdc)), 0, "limit");
        assertEq(facilitator.availableToForward(address(usdc)), 0, "available");
        forwardFails(received, RECIPIENT, limitExceeded(0, 10e6));
    }

    function test_tokensHaveLimitsOfTheirOwn() public {
        MockUSDC other = deployUsdc("USD Coin", "2", ISSUER);
        setLimit(10e6);
        forward(received, RECIPIENT);
        assertEq(facilitator.availableToForward(address(other)), DEFAULT_LIMIT, "of the other token");
    }

    function test_refusesALimitThatCannotBeCounted() public {
        uint256 tooMuch = uint256(type(uint208).max) + 1;
        vm.prank(ADMIN);
        vm.expectRevert(
            abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 208, tooMuch)
        );
        facilitator.setForwardLimit(address(usdc), tooMuch);
        setLimit(tooMuch - 1);
        forward(received, RECIPIENT);
    }

    function test_theDefaultLimitIsKeptFromTheFirstForwardOn() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(payer, 100);
        token.transferWithAuthorization(payer, address(facilitator), 100, 0, 0, "nonce", "");
        IX402Facilitator.Authorization memory authorization = authorize(payer, 100, "nonce");
        bytes memory signature =
            signFor(PAYER_KEY, authorization, address(facilitator), token.DOMAIN_SEPARATOR());
        vm.prank(RECOVERER);
        facilitator.forwardReceived(address(token), authorization, signature, RECIPIENT);
        token.setDecimals(18);
        assertEq(facilitator.forwardLimit(address(token)), 1_000e6, "limit");
        assertEq(facilitator.availableToForward(address(token)), 1_000e6 - 100, "available");
    }

    function test_theDefaultLimitFollowsTheTokensDecimals() public {
        MisbehavingToken token = new MisbehavingToken();
        uint256[4] memory decimals = [uint256(0), 18, 59, 60];
        uint256[4] memory limits = [uint256(1_000), 1_000e18, 1_000e59, 0];
        for (uint256 i = 0; i < decimals.length; ++i) {
            token.setDecimals(decimals[i]);
            assertEq(facilitator.forwardLimit(address(token)), limits[i], "limit");
            assertEq(facilitator.availableToForward(address(token)), limits[i], "available");
        }
        token.hideDecimals();
        assertEq(facilitator.forwardLimit(address(token)), 0, "limit without decimals");
        assertEq(facilitator.forwardLimit(STRANGER), 0, "limit without a token");
    }

    function test_refusesATokenThatPaysAnotherAmount() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(address(facilitator), 1_000);
        token.transferWithAuthorization(payer, address(facilitator), 0, 0, 0, "nonce", "");
        bytes32 domain = token.DOMAIN_SEPARATOR();
        IX402Facilitator.Authorization memory authorization = authorize(payer, 100, "nonce");
        bytes memory signature = signFor(PAYER_KEY, authorization, address(facilitator), domain);
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
            facilitator.forwardReceived(address(token), authorization, signature, RECIPIENT);
        }
    }

    /// @dev A payment that its payer signed to the facilitator and then cancelled.
    function cancelled(uint256 value, bytes32 nonce) private returns (IX402Facilitator.Payment memory) {
        usdc.cancelAuthorization(payer, nonce, signCancellation(PAYER_KEY, payer, nonce));
        return pay(PAYER_KEY, value, nonce);
    }

    /// @dev A contract wallet of the payer's key, and its payment, which was submitted straight to the token.
    function submitFromWallet() private returns (address wallet, IX402Facilitator.Payment memory payment) {
        wallet = deployCode("Mock1271Wallet", abi.encode(payer));
        usdc.mint(wallet, 5e6);
        payment = signPayment(PAYER_KEY, authorize(wallet, 5e6, "wallet"));
        submitDirectly(payment);
    }

    function setLimit(uint256 value) private {
        vm.prank(ADMIN);
        facilitator.setForwardLimit(address(usdc), value);
    }

    function forward(IX402Facilitator.Payment memory payment, address recipient) private {
        vm.prank(RECOVERER);
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, recipient);
    }

    function forwardFails(IX402Facilitator.Payment memory payment, address recipient, bytes memory reason)
        private
    {
        vm.prank(RECOVERER);
        vm.expectRevert(reason);
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, recipient);
    }

    function refusesAsNotSigned(IX402Facilitator.Payment memory payment) private {
        forwardFails(payment, RECIPIENT, about(IX402Facilitator.AuthorizationNotSigned.selector, payment));
    }

    /// @dev An error that names an authorization.
    function about(bytes4 selector, IX402Facilitator.Payment memory payment)
        private
        view
        returns (bytes memory)
    {
        return abi.encodeWithSelector(
            selector, address(usdc), payment.authorization.from, payment.authorization.nonce
        );
    }

    function limitExceeded(uint256 available, uint256 requested) private view returns (bytes memory) {
        return abi.encodeWithSelector(
            IX402Facilitator.ForwardLimitExceeded.selector, address(usdc), available, requested
        );
    }
}
