// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

/// @title Payments whose payers signed the merchant's own address
/// @dev Funds of somebody else are stranded in the contract all the while; they must stay.
contract TransferDirectTest is FacilitatorTest {
    address private constant MERCHANT = address(uint160(uint256(keccak256("merchant"))));
    address private constant OTHER_MERCHANT = address(uint160(uint256(keccak256("other merchant"))));
    uint256 private constant STRANDED = 500e6;
    bytes private usedReason = errorData("FiatTokenV2: authorization is used or canceled");

    function setUp() public override {
        super.setUp();
        usdc.mint(address(facilitator), STRANDED);
    }

    function test_movesTheValueFromPayerToPayee() public {
        transferDirect(payTo(MERCHANT, 10e6, "nonce"), MERCHANT);
        assertEq(usdc.balanceOf(payer), 990e6, "payer");
        assertEq(usdc.balanceOf(MERCHANT), 10e6, "merchant");
        assertStrandedStays();
    }

    function test_leavesTheTokensOwnEventsAsTheOnlyOnes() public {
        IX402Facilitator.Payment memory payment = payTo(MERCHANT, 10e6, "nonce");
        vm.recordLogs();
        transferDirect(payment, MERCHANT);
        assertTransferred(vm.getRecordedLogs());

        payment = payTo(MERCHANT, 10e6, "batch");
        assertTransferred(transferBatch(address(usdc), onlyGroup(group(MERCHANT, payment))));
    }

    function test_takesTheSignatureOfAContractWallet() public {
        address wallet = deployCode("Mock1271Wallet", abi.encode(payer));
        usdc.mint(wallet, 10e6);
        transferDirect(signTo(MERCHANT, authorize(wallet, 10e6, "nonce")), MERCHANT);
        assertEq(usdc.balanceOf(MERCHANT), 10e6, "merchant");
    }

    function test_refusesWithTheTokensReason() public {
        IX402Facilitator.Payment memory payment = payTo(MERCHANT, 10e6, "nonce");
        transferFails(payment, OTHER_MERCHANT, errorData("FiatTokenV2: invalid signature"));
        transferDirect(payment, MERCHANT);
        transferFails(payment, MERCHANT, usedReason);
        transferFails(
            payTo(MERCHANT, 991e6, "too much"), MERCHANT, errorData("ERC20: transfer amount exceeds balance")
        );
    }

    /// @dev What is signed to the contract goes through it, or would be stranded.
    function test_refusesPayeesThatCannotBePaid() public {
        address[2] memory payees = [address(0), address(facilitator)];
        for (uint256 i = 0; i < payees.length; ++i) {
            bytes memory reason =
                abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, payees[i]);
            IX402Facilitator.Payment memory payment = payTo(payees[i], 10e6, "nonce");
            transferFails(payment, payees[i], reason);
            Vm.Log[] memory logs = transferBatch(address(usdc), onlyGroup(group(payees[i], payment)));
            assertFailed(logs, payment, reason);
        }
        assertEq(usdc.balanceOf(payer), 1_000e6, "payer");
    }

    /// @dev The token takes anything for a signature, so that only the contract is left to refuse.
    function test_theContractsOwnTokensDoNotMove() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(address(facilitator), STRANDED);
        IX402Facilitator.Payment memory payment = unsigned(address(facilitator), 10e6, "nonce");
        bytes memory reason =
            abi.encodeWithSelector(IX402Facilitator.InvalidPayer.selector, address(facilitator));
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferDirect(address(token), payment, STRANGER);
        assertFailed(transferBatch(address(token), onlyGroup(group(STRANGER, payment))), payment, reason);
        assertEq(token.balanceOf(address(facilitator)), STRANDED, "stranded");
    }

    function test_refusesWhatIsNoToken() public {
        bytes memory reason = abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, STRANGER);
        IX402Facilitator.Payment memory payment = payTo(MERCHANT, 1e6, "nonce");
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferDirect(STRANGER, payment, MERCHANT);
        IX402Facilitator.Group[] memory groups = onlyGroup(group(MERCHANT, payment));
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferBatch(STRANGER, groups);
    }

    function test_aBatchLeavesOutWhatTheTokenRefuses() public {
        IX402Facilitator.Payment memory used = payTo(MERCHANT, 1e6, "used");
        transferDirect(used, MERCHANT);
        IX402Facilitator.Payment memory forged = payTo(MERCHANT, 2e6, "forged");
        forged.signature = sign(0xb0b, forged.authorization, MERCHANT);
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](3);
        groups[0] = group(MERCHANT, used, payTo(MERCHANT, 4e6, "1"));
        groups[1] = group(MERCHANT, forged);
        groups[2] = group(OTHER_MERCHANT, payTo(OTHER_MERCHANT, 8e6, "2"));
        Vm.Log[] memory logs = transferBatch(address(usdc), groups);

        assertFailed(logs, used, usedReason);
        assertFailed(logs, forged, errorData("FiatTokenV2: invalid signature"));
        assertEq(usdc.balanceOf(MERCHANT), 5e6, "merchant");
        assertEq(usdc.balanceOf(OTHER_MERCHANT), 8e6, "other merchant");
        assertEq(usdc.balanceOf(payer), 1_000e6 - 13e6, "payer");
        assertStrandedStays();
    }

    /// @dev Through the contract, the other payments to this recipient would be undone.
    function test_aBatchLeavesOutAMerchantThatCannotBePaid() public {
        vm.prank(ISSUER);
        usdc.blacklist(OTHER_MERCHANT);
        IX402Facilitator.Group[] memory groups = new IX402Facilitator.Group[](2);
        groups[0] = group(OTHER_MERCHANT, payTo(OTHER_MERCHANT, 1e6, "1"));
        groups[1] = group(MERCHANT, payTo(MERCHANT, 2e6, "2"));
        Vm.Log[] memory logs = transferBatch(address(usdc), groups);
        assertFailed(logs, groups[0].payments[0], errorData("Blacklistable: account is blacklisted"));
        assertEq(usdc.balanceOf(MERCHANT), 2e6, "merchant");
    }

    function test_aBatchMovesAPaymentOnce() public {
        IX402Facilitator.Payment memory payment = payTo(MERCHANT, 1e6, "nonce");
        Vm.Log[] memory logs = transferBatch(address(usdc), onlyGroup(group(MERCHANT, payment, payment)));
        assertFailed(logs, payment, usedReason);
        assertEq(usdc.balanceOf(MERCHANT), 1e6, "merchant");
    }

    function test_takesEmptyBatchesAndGroups() public {
        assertEq(transferBatch(address(usdc), new IX402Facilitator.Group[](0)).length, 0, "events");
        assertEq(transferBatch(address(usdc), new IX402Facilitator.Group[](2)).length, 0, "events");
    }

    function test_burnersInABatchCostTheirTransfersAndNoMore() public {
        address wallet = deployCode("MockGasBurningWallet", "");
        usdc.mint(wallet, 100e6);
        IX402Facilitator.Group memory payments;
        payments.recipient = MERCHANT;
        payments.payments = new IX402Facilitator.Payment[](10);
        for (uint256 i = 0; i < 10; ++i) {
            payments.payments[i] = signTo(MERCHANT, authorize(i % 2 == 0 ? wallet : payer, 1e6, bytes32(i)));
        }
        uint256 gasBefore = gasleft();
        Vm.Log[] memory logs = transferBatch(address(usdc), onlyGroup(payments));
        assertTrue(gasBefore - gasleft() < 5 * facilitator.PULL_GAS() + 5 * 100_000, "gas used");
        for (uint256 i = 0; i < 10; i += 2) {
            assertFailed(logs, payments.payments[i], errorData("FiatTokenV2: invalid signature"));
        }
        assertEq(usdc.balanceOf(MERCHANT), 5e6, "merchant");
    }

    /// @dev With every amount of gas the batch either moves all it should or reverts as a whole.
    function test_howeverLittleGasThereIsNoGoodPaymentIsReportedAsFailed() public {
        bytes memory data = abi.encodeCall(
            facilitator.transferBatch,
            (address(usdc), onlyGroup(group(MERCHANT, payTo(MERCHANT, 1e6, "1"), payTo(MERCHANT, 1e6, "2"))))
        );
        uint256 shortages = 0;
        bool success = false;
        for (uint256 amount = 20_000; !success; amount += 997) {
            uint256 snapshot = vm.snapshotState();
            vm.prank(OPERATOR);
            bytes memory result;
            (success, result) = address(facilitator).call{gas: amount}(data);
            assertEq(usdc.balanceOf(MERCHANT), success ? 2e6 : 0, "merchant");
            if (!success && result.length != 0) {
                assertEq(
                    bytes32(bytes4(result)), bytes32(IX402Facilitator.InsufficientGas.selector), "reason"
                );
                ++shortages;
            }
            vm.revertToState(snapshot);
        }
        assertTrue(shortages > 0, "never short of gas");
    }

    /// @dev Whatever a token does with a payment, the contract's own tokens stay, and the next payment has its turn.
    function test_tokensThatMisbehave() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(payer, 1_000e6);
        token.mint(address(facilitator), STRANDED);
        IX402Facilitator.Payment memory payment = unsigned(payer, 100, "nonce");
        bytes memory silent =
            abi.encodeWithSelector(IX402Facilitator.TokenCallFailed.selector, address(token));
        bytes memory bomb = new bytes(facilitator.MAX_REASON_LENGTH());
        bomb[31] = 0x01;
        Behaviour[4] memory behaviours =
            [Behaviour.RevertSilently, Behaviour.RevertBomb, Behaviour.Burn, Behaviour.ReturnBomb];
        bytes[4] memory reasons = [silent, bomb, silent, bytes("")];
        for (uint256 i = 0; i < behaviours.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            token.behave(behaviours[i], Behaviour.Correct);
            Vm.Log[] memory logs = transferBatch(address(token), onlyGroup(group(MERCHANT, payment)));
            bool fails = reasons[i].length != 0;
            if (fails) assertFailed(logs, payment, reasons[i]);
            assertEq(token.balanceOf(MERCHANT), fails ? 0 : 100, "merchant");
            assertEq(token.balanceOf(address(facilitator)), STRANDED, "stranded");
            vm.revertToState(snapshot);

            token.behave(behaviours[i], Behaviour.Correct);
            vm.prank(OPERATOR);
            if (fails) vm.expectRevert(reasons[i]);
            facilitator.transferDirect(address(token), payment, MERCHANT);
        }
    }

    function test_reentrantTokensGetNowhere() public {
        MisbehavingToken token = new MisbehavingToken();
        token.mint(payer, 1_000);
        bytes32 role = facilitator.OPERATOR_ROLE();
        vm.prank(ADMIN);
        IAccessControl(address(facilitator)).grantRole(role, address(token));
        IX402Facilitator.Payment memory inner = unsigned(payer, 50, "inner");
        IX402Facilitator.Payment memory payment = unsigned(payer, 100, "nonce");
        bytes[3] memory calls = [
            abi.encodeCall(facilitator.settle, (address(token), inner.authorization, "", STRANGER)),
            abi.encodeCall(facilitator.transferDirect, (address(token), inner, STRANGER)),
            abi.encodeCall(facilitator.transferBatch, (address(token), onlyGroup(group(STRANGER, inner))))
        ];
        bytes memory reason =
            abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        token.behave(Behaviour.Call, Behaviour.Correct);
        for (uint256 i = 0; i < calls.length; ++i) {
            token.callOut(address(facilitator), calls[i]);
            vm.prank(OPERATOR);
            vm.expectRevert(reason);
            facilitator.transferDirect(address(token), payment, MERCHANT);
            assertFailed(transferBatch(address(token), onlyGroup(group(MERCHANT, payment))), payment, reason);
        }
        assertEq(token.balanceOf(STRANGER), 0, "stranger");
    }

    function testFuzz_movesExactlyWhatWasSigned(uint256 value, bytes32 nonce, address payee) public {
        vm.assume(
            payee != address(0) && payee != payer && payee != address(facilitator) && payee != address(usdc)
        );
        value = bound(value, 0, 1_000e6);
        uint256 before = usdc.balanceOf(payee);
        transferDirect(payTo(payee, value, nonce), payee);
        assertEq(usdc.balanceOf(payee), before + value, "payee");
        assertEq(usdc.balanceOf(payer), 1_000e6 - value, "payer");
        assertStrandedStays();
    }

    function assertStrandedStays() private view {
        assertEq(usdc.balanceOf(address(facilitator)), STRANDED, "stranded");
    }

    function assertTransferred(Vm.Log[] memory logs) private view {
        assertEq(logs.length, 2, "events");
        for (uint256 i = 0; i < logs.length; ++i) {
            assertEq(logs[i].emitter, address(usdc), "emitter");
            bytes32 topic = i % 2 == 0 ? MockUSDC.AuthorizationUsed.selector : IERC20.Transfer.selector;
            assertEq(logs[i].topics[0], topic, "topic");
        }
    }

    function payTo(address payee, uint256 value, bytes32 nonce)
        private
        view
        returns (IX402Facilitator.Payment memory)
    {
        return signTo(payee, authorize(payer, value, nonce));
    }

    function signTo(address payee, IX402Facilitator.Authorization memory authorization)
        private
        view
        returns (IX402Facilitator.Payment memory)
    {
        return IX402Facilitator.Payment({
            authorization: authorization, signature: sign(PAYER_KEY, authorization, payee)
        });
    }

    function transferDirect(IX402Facilitator.Payment memory payment, address payee) private {
        vm.prank(OPERATOR);
        facilitator.transferDirect(address(usdc), payment, payee);
    }

    function transferFails(IX402Facilitator.Payment memory payment, address payee, bytes memory reason)
        private
    {
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferDirect(address(usdc), payment, payee);
    }

    function transferBatch(address token, IX402Facilitator.Group[] memory groups)
        private
        returns (Vm.Log[] memory)
    {
        vm.recordLogs();
        vm.prank(OPERATOR);
        facilitator.transferBatch(token, groups);
        return vm.getRecordedLogs();
    }
}
