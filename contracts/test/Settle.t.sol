// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {Mock7702Delegate} from "../mocks/Mock7702Delegate.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Vm} from "./utils/Vm.sol";

contract SettleTest is FacilitatorTest {
    uint256 private constant HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    function test_movesTheValueFromPayerToRecipient() public {
        settle(pay(PAYER_KEY, 10e6, "nonce"), RECIPIENT);

        assertEq(usdc.balanceOf(payer), 990e6, "payer");
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(usdc.balanceOf(address(facilitator)), 0, "facilitator");
        assertTrue(usdc.authorizationState(payer, "nonce"), "authorization used");
    }

    function test_emitsTheTokensEventsAndThenItsOwn() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        vm.recordLogs();
        settle(payment, RECIPIENT);
        Vm.Log[] memory logs = vm.getRecordedLogs();

        assertEq(logs.length, 4, "events");
        assertEq(logs[0].topics[0], MockUSDC.AuthorizationUsed.selector, "first event");
        assertEq(logs[1].topics[2], bytes32(uint256(uint160(address(facilitator)))), "pull");
        assertEq(logs[2].topics[2], bytes32(uint256(uint160(RECIPIENT))), "forward");
        assertEq(logs[3].topics[1], bytes32(uint256(uint160(address(usdc)))), "token of Settled");
        assertSettled(logs, payment, RECIPIENT);
    }

    function test_leavesStrandedFundsWhereTheyAre() public {
        submitDirectly(pay(PAYER_KEY, 7e6, "stranded"));
        settle(pay(PAYER_KEY, 10e6, "nonce"), RECIPIENT);
        assertEq(usdc.balanceOf(address(facilitator)), 7e6, "stranded");
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_takesAPaymentOfNothing() public {
        settle(pay(PAYER_KEY, 0, "nonce"), RECIPIENT);
        assertTrue(usdc.authorizationState(payer, "nonce"), "authorization used");
    }

    function test_takesTheSignatureOfAContractWallet() public {
        address wallet = deployCode("Mock1271Wallet", abi.encode(payer));
        usdc.mint(wallet, 10e6);
        settle(signPayment(PAYER_KEY, authorize(wallet, 10e6, "nonce")), RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_takesTheSignatureOfAnAccountWithDelegatedCode() public {
        vm.etch(payer, deployCode("Mock7702Delegate", "").code);
        settle(pay(PAYER_KEY, 10e6, "nonce"), RECIPIENT);
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    function test_refusesAContractWalletWithAnotherOwner() public {
        address wallet = deployCode("Mock1271Wallet", abi.encode(STRANGER));
        usdc.mint(wallet, 10e6);
        settleFails(
            signPayment(PAYER_KEY, authorize(wallet, 10e6, "nonce")),
            RECIPIENT,
            errorData("FiatTokenV2: invalid signature")
        );
    }

    function test_aWalletThatBurnsItsGasCostsNoMoreThanThePull() public {
        address wallet = deployCode("MockGasBurningWallet", "");
        usdc.mint(wallet, 10e6);
        IX402Facilitator.Payment memory payment = signPayment(PAYER_KEY, authorize(wallet, 10e6, "nonce"));
        uint256 gasBefore = gasleft();
        vm.prank(OPERATOR);
        (bool success,) = address(facilitator)
            .call(
                abi.encodeCall(
                    facilitator.settle, (address(usdc), payment.authorization, payment.signature, RECIPIENT)
                )
            );
        assertFalse(success, "settled");
        assertTrue(gasBefore - gasleft() < facilitator.PULL_GAS() + 40_000, "gas used");
    }

    function test_refusesASecondSettlement() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        settle(payment, RECIPIENT);
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: authorization is used or canceled"));
    }

    function test_refusesAnAuthorizationThatSomebodySubmittedDirectly() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        submitDirectly(payment);
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: authorization is used or canceled"));
    }

    function test_refusesACancelledAuthorizationEvenWithFundsStranded() public {
        submitDirectly(pay(PAYER_KEY, 10e6, "stranded"));
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        usdc.cancelAuthorization(payer, "nonce", signCancellation(PAYER_KEY, payer, "nonce"));
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: authorization is used or canceled"));
    }

    function test_refusesAnAuthorizationToSomebodyElse() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        payment.signature = sign(PAYER_KEY, payment.authorization, STRANGER);
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: invalid signature"));
    }

    function test_refusesBeforeAndAtValidAfter() public {
        IX402Facilitator.Authorization memory authorization = authorize(payer, 10e6, "nonce");
        authorization.validAfter = block.timestamp;
        IX402Facilitator.Payment memory payment = signPayment(PAYER_KEY, authorization);
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: authorization is not yet valid"));
        vm.warp(NOW + 1);
        settle(payment, RECIPIENT);
    }

    function test_refusesAtAndAfterValidBefore() public {
        IX402Facilitator.Authorization memory authorization = authorize(payer, 10e6, "nonce");
        authorization.validBefore = block.timestamp + 1;
        IX402Facilitator.Payment memory payment = signPayment(PAYER_KEY, authorization);
        vm.warp(NOW + 1);
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: authorization is expired"));
        vm.warp(NOW);
        settle(payment, RECIPIENT);
    }

    function test_refusesMoreThanThePayerHas() public {
        settleFails(
            pay(PAYER_KEY, 1_000e6 + 1, "nonce"),
            RECIPIENT,
            errorData("ERC20: transfer amount exceeds balance")
        );
    }

    function test_refusesBlacklistedAccounts() public {
        address[3] memory accounts = [payer, address(facilitator), RECIPIENT];
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.prank(ISSUER);
            usdc.blacklist(accounts[i]);
            settleFails(payment, RECIPIENT, errorData("Blacklistable: account is blacklisted"));
            vm.prank(ISSUER);
            usdc.unBlacklist(accounts[i]);
        }
        assertFalse(usdc.authorizationState(payer, "nonce"), "authorization used");
        settle(payment, RECIPIENT);
    }

    function test_refusesWhileTheTokenIsPaused() public {
        vm.prank(ISSUER);
        usdc.pause();
        settleFails(pay(PAYER_KEY, 10e6, "nonce"), RECIPIENT, errorData("Pausable: paused"));
    }

    function test_refusesSignaturesThatTheTokenRefuses() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        bytes memory signature = payment.signature;
        (bytes32 r, bytes32 s, uint8 v) = split(signature);

        payment.signature = abi.encodePacked(r, s);
        settleFails(payment, RECIPIENT, errorData("ECRecover: invalid signature length"));

        payment.signature = abi.encodePacked(r, s, v - 27);
        settleFails(payment, RECIPIENT, errorData("ECRecover: invalid signature 'v' value"));

        uint256 order = 2 * HALF_ORDER + 1;
        payment.signature = abi.encodePacked(r, order - uint256(s), v == 27 ? 28 : 27);
        settleFails(payment, RECIPIENT, errorData("ECRecover: invalid signature 's' value"));

        payment.signature = abi.encodePacked(bytes32(0), s, v);
        settleFails(payment, RECIPIENT, errorData("ECRecover: invalid signature"));
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, 10e6, "nonce");
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < recipients.length; ++i) {
            settleFails(
                payment,
                recipients[i],
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i])
            );
        }
    }

    function testFuzz_movesExactlyTheValue(
        uint256 key,
        uint256 value,
        uint256 held,
        uint256 stranded,
        uint256 age,
        uint256 rest,
        bytes32 nonce,
        address recipient
    ) public {
        IX402Facilitator.Authorization memory authorization;
        (key, authorization) = boundAuthorization(key, value, held, age, rest, nonce);
        vm.assume(isPlainRecipient(recipient) && recipient != authorization.from);
        stranded = bound(stranded, 0, type(uint128).max);
        fund(address(facilitator), stranded);
        uint256 payerBefore = usdc.balanceOf(authorization.from);
        uint256 recipientBefore = usdc.balanceOf(recipient);

        settle(signPayment(key, authorization), recipient);

        assertEq(usdc.balanceOf(authorization.from), payerBefore - authorization.value, "payer");
        assertEq(usdc.balanceOf(recipient), recipientBefore + authorization.value, "recipient");
        assertEq(usdc.balanceOf(address(facilitator)), stranded, "stranded");
    }

    function testFuzz_refusesAnythingElseThanWhatWasSigned(
        uint256 key,
        uint256 value,
        bytes32 nonce,
        uint256 field,
        uint256 change
    ) public {
        IX402Facilitator.Authorization memory authorization;
        (key, authorization) = boundAuthorization(key, value, type(uint128).max, 100, 100, nonce);
        IX402Facilitator.Payment memory payment = signPayment(key, authorization);
        uint256 signedValue = authorization.value;
        field = bound(field, 0, 4);
        if (field == 0) {
            authorization.from = vm.addr(bound(change, 1, HALF_ORDER));
            vm.assume(authorization.from != vm.addr(key) && isPlainRecipient(authorization.from));
        } else if (field == 1) {
            authorization.value = bound(change, 0, type(uint128).max);
            vm.assume(authorization.value != signedValue);
        } else if (field == 2) {
            authorization.validAfter -= bound(change, 1, authorization.validAfter);
        } else if (field == 3) {
            authorization.validBefore += bound(change, 1, 1e9);
        } else {
            vm.assume(bytes32(change) != nonce);
            authorization.nonce = bytes32(change);
        }
        fund(authorization.from, authorization.value);
        payment.authorization = authorization;
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: invalid signature"));
    }

    function testFuzz_refusesAnySignatureOfSomebodyElse(uint256 key, uint256 value, bytes memory signature)
        public
    {
        key = bound(key, 1, HALF_ORDER);
        vm.assume(vm.addr(key) != payer);
        IX402Facilitator.Payment memory payment = pay(PAYER_KEY, bound(value, 0, 1_000e6), "nonce");
        payment.signature = sign(key, payment.authorization, address(facilitator));
        settleFails(payment, RECIPIENT, errorData("FiatTokenV2: invalid signature"));

        payment.signature = signature;
        vm.prank(OPERATOR);
        vm.expectRevert();
        facilitator.settle(address(usdc), payment.authorization, payment.signature, RECIPIENT);
    }

    function boundAuthorization(
        uint256 key,
        uint256 value,
        uint256 held,
        uint256 age,
        uint256 rest,
        bytes32 nonce
    ) private returns (uint256, IX402Facilitator.Authorization memory authorization) {
        key = bound(key, 1, HALF_ORDER);
        value = bound(value, 0, type(uint128).max);
        authorization = authorize(vm.addr(key), value, nonce);
        vm.assume(isPlainRecipient(authorization.from));
        authorization.validAfter = block.timestamp - bound(age, 1, block.timestamp);
        authorization.validBefore = block.timestamp + bound(rest, 1, 1e9);
        fund(authorization.from, bound(held, value, type(uint128).max));
        return (key, authorization);
    }

    function isPlainRecipient(address account) private view returns (bool) {
        return account != address(0) && account != address(facilitator) && account.code.length == 0;
    }

    function split(bytes memory signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        (r, s) = abi.decode(signature, (bytes32, bytes32));
        v = uint8(signature[64]);
    }
}
