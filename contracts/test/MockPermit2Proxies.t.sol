// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {
    Eip2612Permit,
    ExactWitness,
    IExactPermit2Proxy,
    IPermit2Approval,
    IPermit2Proxy,
    IUptoPermit2Proxy,
    UptoWitness
} from "../interfaces/IPermit2Proxies.sol";
import {MockPermitToken} from "../mocks/MockPermitToken.sol";
import {Permit2Deployment} from "./utils/Permit2Deployment.sol";
import {Vm} from "./utils/Vm.sol";

/**
 * @title What the two proxies of x402 do with each payment and each fault of one
 * @dev A base, so that other code than the stand-ins' can be held against the same tests.
 */
abstract contract Permit2ProxiesBehaviour is Permit2Deployment {
    uint256 internal constant OWNER_KEY = 0xa11ce;
    uint256 private constant NOW = 1_800_000_000;
    address private constant MERCHANT = address(uint160(uint256(keccak256("merchant"))));
    address private constant FACILITATOR = address(uint160(uint256(keccak256("facilitator"))));
    bytes32 private constant EIP2612_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    MockPermitToken private token;
    address private owner;

    /// @dev Everything that one call is made of, for either proxy.
    struct Payment {
        bool upto;
        address owner;
        uint256 amount;
        address to;
        address facilitator;
        uint256 validAfter;
        IPermit2.PermitTransferFrom permit;
        bytes signature;
    }

    function setUp() public {
        vm.warp(NOW);
        deployPermit2();
        deploy();
        token = MockPermitToken(deployCode("MockPermitToken", abi.encode("Test", "TST", uint8(6))));
        owner = vm.addr(OWNER_KEY);
        token.mint(owner, 1_000);
        vm.prank(owner);
        token.approve(address(PERMIT2), type(uint256).max);
    }

    function deploy() internal virtual;

    function test_saysWhatItIs() public view {
        assertEq(address(EXACT_PROXY.PERMIT2()), address(PERMIT2), "Permit2");
        assertEq(address(UPTO_PROXY.PERMIT2()), address(PERMIT2), "Permit2");
        assertEq(
            EXACT_PROXY.WITNESS_TYPEHASH(),
            0xd97b3239a7f32295517bd14cb074edfdd188dfe5eb42f802bb26d4fd1eb12c37,
            "exact"
        );
        assertEq(
            UPTO_PROXY.WITNESS_TYPEHASH(),
            0xd4171c445a74218b01d4fd8af34ff1106580ea1e36ff837e64484bfaa2253b75,
            "upto"
        );
    }

    function test_settles() public {
        vm.recordLogs();
        settle(signed(false, 100));
        assertEvents(vm.getRecordedLogs(), IPermit2Proxy.Settled.selector);
        assertEq(token.balanceOf(MERCHANT), 100, "merchant");

        Payment memory upto = signed(true, 100);
        upto.amount = 30;
        upto.permit.nonce = 0;
        sign(upto);
        settle(upto);
        assertEq(token.balanceOf(MERCHANT), 130, "merchant");
    }

    function test_anybodySettlesAnExactPayment() public {
        Payment memory payment = signed(false, 100);
        payment.facilitator = MERCHANT;
        settle(payment);
        assertEq(token.balanceOf(MERCHANT), 100, "merchant");
    }

    /// @dev One bitmap for both.
    function test_aNonceIsUsedOnceAcrossTheProxies() public {
        settle(signed(false, 100));
        fails(signed(true, 100), abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
    }

    function test_refusesEachFaultWithItsReason() public {
        for (uint256 i = 0; i < 2; ++i) {
            bool upto = i == 1;
            Payment memory payment = signed(upto, 0);
            fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidAmount.selector));

            payment = signed(upto, 100);
            payment.owner = address(0);
            fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidOwner.selector));

            payment = signed(upto, 100);
            payment.to = address(0);
            fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidDestination.selector));

            payment = signed(upto, 100);
            payment.validAfter = NOW + 1;
            sign(payment);
            fails(payment, abi.encodeWithSelector(IPermit2Proxy.PaymentTooEarly.selector));

            payment = signed(upto, 100);
            payment.permit.deadline = NOW - 1;
            sign(payment);
            fails(payment, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW - 1));

            payment = signed(upto, 100);
            payment.to = FACILITATOR;
            fails(payment, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));

            fails(signed(upto, 1_001), errorData("TRANSFER_FROM_FAILED"));
        }
        Payment memory foreign = signed(true, 100);
        foreign.amount = 101;
        fails(foreign, abi.encodeWithSelector(IUptoPermit2Proxy.AmountExceedsPermitted.selector));
        foreign = signed(true, 100);
        vm.expectRevert(abi.encodeWithSelector(IUptoPermit2Proxy.UnauthorizedFacilitator.selector));
        UPTO_PROXY.settle(foreign.permit, 100, owner, uptoWitnessOf(foreign), foreign.signature);
    }

    /// @dev A payment with every fault, from which the first one is taken away again and again.
    function test_theFirstFaultIsTheReason() public {
        Payment memory payment = signed(true, 0);
        payment.amount = 1;
        payment.owner = address(0);
        payment.to = address(0);
        payment.validAfter = NOW + 1;
        payment.permit.deadline = NOW - 1;
        fails(payment, abi.encodeWithSelector(IUptoPermit2Proxy.AmountExceedsPermitted.selector));
        payment.amount = 0;
        fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidAmount.selector));
        payment.permit.permitted.amount = 1;
        payment.amount = 1;
        fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidOwner.selector));
        payment.owner = owner;
        fails(payment, abi.encodeWithSelector(IPermit2Proxy.InvalidDestination.selector));
        payment.to = MERCHANT;
        fails(payment, abi.encodeWithSelector(IPermit2Proxy.PaymentTooEarly.selector));
        payment.validAfter = NOW;
        fails(payment, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW - 1));
        payment.permit.deadline = NOW;
        fails(payment, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        sign(payment);
        settle(payment);
    }

    function test_submitsThePermitFirst() public {
        for (uint256 i = 0; i < 2; ++i) {
            revokeApproval();
            Payment memory payment = signed(i == 1, 100);
            payment.permit.nonce = i;
            sign(payment);
            vm.recordLogs();
            settleWithPermit(payment, signPermit(100, NOW));
            Vm.Log[] memory logs = vm.getRecordedLogs();
            assertEq(logs.length, 3, "events");
            assertEq(logs[0].topics[0], IERC20.Approval.selector, "approval");
            assertEq(logs[2].topics[0], IPermit2Proxy.SettledWithPermit.selector, "last event");
        }
        assertEq(token.balanceOf(MERCHANT), 200, "merchant");
        assertEq(token.allowance(owner, address(PERMIT2)), 0, "allowance");
    }

    /// @dev Somebody may have submitted it before.
    function test_goesOnWhereTheTokenRefusesThePermit() public {
        revokeApproval();
        Payment memory payment = signed(false, 100);
        Eip2612Permit memory permit2612 = signPermit(100, NOW);
        token.permit(
            owner, address(PERMIT2), 100, permit2612.deadline, permit2612.v, permit2612.r, permit2612.s
        );
        settleWithPermit(payment, permit2612);
        assertEq(token.balanceOf(MERCHANT), 100, "merchant");
    }

    function test_tellsHowThePermitFailed() public {
        RefusingPermits refusing = new RefusingPermits();
        Payment memory payment = signed(false, 100);
        payment.permit.permitted.token = address(refusing);
        sign(payment);
        bytes32[3] memory topics = [
            IPermit2Approval.EIP2612PermitFailedWithReason.selector,
            IPermit2Approval.EIP2612PermitFailedWithPanic.selector,
            IPermit2Approval.EIP2612PermitFailedWithData.selector
        ];
        bytes[3] memory data = [
            abi.encode("no permits"),
            abi.encode(uint256(0x11)),
            abi.encode(abi.encodeWithSelector(RefusingPermits.NoPermits.selector, 7))
        ];
        for (uint256 i = 0; i < topics.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            refusing.setWay(i);
            vm.recordLogs();
            settleWithPermit(payment, signPermit(100, NOW));
            Vm.Log memory log = vm.getRecordedLogs()[0];
            assertEq(log.topics[0], topics[i], "event");
            assertEq(log.topics[1], bytes32(uint256(uint160(address(refusing)))), "token");
            assertEq(log.topics[2], bytes32(uint256(uint160(owner))), "owner");
            assertEq(log.data, data[i], "data");
            vm.revertToState(snapshot);
        }
    }

    function test_thePermitMustBeOfThePermittedAmount() public {
        bytes memory mismatch = abi.encodeWithSelector(IPermit2Approval.Permit2612AmountMismatch.selector);
        Eip2612Permit memory permit2612 = signPermit(type(uint256).max, NOW);
        Payment memory payment = signed(false, 100);
        vm.expectRevert(mismatch);
        EXACT_PROXY.settleWithPermit(
            permit2612, payment.permit, owner, exactWitnessOf(payment), payment.signature
        );
        payment = signed(true, 100);
        payment.amount = 30;
        // Of the permitted amount, not of what is settled.
        permit2612 = signPermit(30, NOW);
        vm.prank(FACILITATOR);
        vm.expectRevert(mismatch);
        UPTO_PROXY.settleWithPermit(
            permit2612, payment.permit, 30, owner, uptoWitnessOf(payment), payment.signature
        );
        // Who may settle, and how much, is looked at before.
        vm.expectRevert(abi.encodeWithSelector(IUptoPermit2Proxy.UnauthorizedFacilitator.selector));
        UPTO_PROXY.settleWithPermit(
            permit2612, payment.permit, 30, owner, uptoWitnessOf(payment), payment.signature
        );
        vm.expectRevert(abi.encodeWithSelector(IUptoPermit2Proxy.AmountExceedsPermitted.selector));
        UPTO_PROXY.settleWithPermit(
            permit2612, payment.permit, 101, owner, uptoWitnessOf(payment), payment.signature
        );
    }

    function test_reentrantPermitsGetNowhere() public {
        ReentrantPermits reentrant = new ReentrantPermits();
        Payment memory inner = signed(false, 100);
        reentrant.setData(
            abi.encodeCall(
                IExactPermit2Proxy.settle, (inner.permit, owner, exactWitnessOf(inner), inner.signature)
            )
        );
        Payment memory payment = signed(false, 100);
        payment.permit.permitted.token = address(reentrant);
        payment.permit.nonce = 1;
        sign(payment);
        vm.recordLogs();
        settleWithPermit(payment, signPermit(100, NOW));
        assertEq(
            vm.getRecordedLogs()[0].data,
            abi.encode(abi.encodeWithSelector(ReentrancyGuard.ReentrancyGuardReentrantCall.selector)),
            "reason"
        );
        assertEq(token.balanceOf(MERCHANT), 0, "merchant");
        settle(inner);
    }

    function signed(bool upto, uint256 permitted) private view returns (Payment memory payment) {
        payment = Payment({
            upto: upto,
            owner: owner,
            amount: permitted,
            to: MERCHANT,
            facilitator: FACILITATOR,
            validAfter: NOW,
            permit: IPermit2.PermitTransferFrom({
                permitted: IPermit2.TokenPermissions(address(token), permitted), nonce: 1_000, deadline: NOW
            }),
            signature: ""
        });
        sign(payment);
    }

    function sign(Payment memory payment) private view {
        bytes32 digest = payment.upto
            ? permit2Digest(
                payment.permit, UPTO_PROXY, uptoWitness(payment.to, payment.facilitator, payment.validAfter)
            )
            : permit2Digest(payment.permit, EXACT_PROXY, exactWitness(payment.to, payment.validAfter));
        payment.signature = signatureOver(OWNER_KEY, digest);
    }

    function settle(Payment memory payment) private {
        vm.prank(payment.facilitator);
        if (payment.upto) {
            UPTO_PROXY.settle(
                payment.permit, payment.amount, payment.owner, uptoWitnessOf(payment), payment.signature
            );
        } else {
            EXACT_PROXY.settle(payment.permit, payment.owner, exactWitnessOf(payment), payment.signature);
        }
    }

    function fails(Payment memory payment, bytes memory reason) private {
        vm.prank(payment.facilitator);
        vm.expectRevert(reason);
        if (payment.upto) {
            UPTO_PROXY.settle(
                payment.permit, payment.amount, payment.owner, uptoWitnessOf(payment), payment.signature
            );
        } else {
            EXACT_PROXY.settle(payment.permit, payment.owner, exactWitnessOf(payment), payment.signature);
        }
    }

    function settleWithPermit(Payment memory payment, Eip2612Permit memory permit2612) private {
        vm.prank(payment.facilitator);
        if (payment.upto) {
            UPTO_PROXY.settleWithPermit(
                permit2612, payment.permit, payment.amount, owner, uptoWitnessOf(payment), payment.signature
            );
        } else {
            EXACT_PROXY.settleWithPermit(
                permit2612, payment.permit, owner, exactWitnessOf(payment), payment.signature
            );
        }
    }

    function revokeApproval() private {
        vm.prank(owner);
        token.approve(address(PERMIT2), 0);
    }

    function signPermit(uint256 value, uint256 deadline) private view returns (Eip2612Permit memory) {
        bytes32 structHash =
            keccak256(abi.encode(EIP2612_TYPEHASH, owner, PERMIT2, value, token.nonces(owner), deadline));
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER_KEY, digest);
        return Eip2612Permit(value, deadline, r, s, v);
    }

    function exactWitnessOf(Payment memory payment) private pure returns (ExactWitness memory) {
        return ExactWitness(payment.to, payment.validAfter);
    }

    function uptoWitnessOf(Payment memory payment) private pure returns (UptoWitness memory) {
        return UptoWitness(payment.to, payment.facilitator, payment.validAfter);
    }

    function assertEvents(Vm.Log[] memory logs, bytes32 last) private view {
        assertEq(logs.length, 2, "events");
        assertEq(logs[0].topics[0], IERC20.Transfer.selector, "first event");
        assertEq(logs[0].emitter, address(token), "token");
        assertEq(logs[1].topics[0], last, "last event");
        assertEq(logs[1].topics.length, 1, "topics");
        assertEq(logs[1].data, "", "data");
    }
}

contract MockPermit2ProxiesTest is Permit2ProxiesBehaviour {
    function deploy() internal override {
        deployPermit2Proxies();
    }
}

/// @dev Takes every transfer, and refuses every permit in one of three ways.
contract RefusingPermits {
    uint256 private way;

    error NoPermits(uint256 number);

    function setWay(uint256 way_) external {
        way = way_;
    }

    function permit(address, address, uint256, uint256, uint8, bytes32, bytes32) external view {
        if (way == 0) revert("no permits");
        if (way == 1) {
            uint256 none = 0;
            --none;
        }
        revert NoPermits(7);
    }

    function transferFrom(address, address, uint256) external pure returns (bool) {
        return true;
    }
}

/// @dev Calls the proxy back when it is asked for a permit.
contract ReentrantPermits {
    bytes private data;

    function setData(bytes calldata data_) external {
        data = data_;
    }

    function permit(address, address, uint256, uint256, uint8, bytes32, bytes32) external {
        (bool success, bytes memory result) = msg.sender.call(data);
        require(!success, "the call went through");
        assembly ("memory-safe") {
            revert(add(result, 0x20), mload(result))
        }
    }

    function transferFrom(address, address, uint256) external pure returns (bool) {
        return true;
    }
}
