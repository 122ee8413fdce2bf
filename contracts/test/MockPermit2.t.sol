// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {IPermit2} from "../interfaces/IPermit2.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockERC20} from "../mocks/MockERC20.sol";
import {MockUSDT} from "../mocks/MockUSDT.sol";
import {Permit2Deployment} from "./utils/Permit2Deployment.sol";
import {Vm} from "./utils/Vm.sol";

/// @title What x402 relies on of Permit2, shown of the stand-in and of the published code alike
abstract contract Permit2Behaviour is Permit2Deployment {
    uint256 private constant OWNER_KEY = 0xa11ce;
    uint256 private constant NOW = 1_800_000_000;
    uint256 private constant ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
    address private constant TO = address(uint160(uint256(keccak256("to"))));
    address private constant SPENDER = address(uint160(uint256(keccak256("spender"))));
    bytes32 private constant WITNESS = keccak256("witness");
    string private constant WITNESS_TYPE =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to)";

    MockERC20 private token;
    address private owner;
    IPermit2.PermitTransferFrom private permit;
    bytes private signature;

    function setUp() public {
        vm.warp(NOW);
        deploy();
        token = MockERC20(deployCode("MockERC20", abi.encode("Test", "TST", uint8(6))));
        owner = vm.addr(OWNER_KEY);
        fund(owner);
        permit = IPermit2.PermitTransferFrom({
            permitted: IPermit2.TokenPermissions(address(token), 100), nonce: 1_000, deadline: NOW
        });
        signature = sign();
    }

    function deploy() internal virtual;

    function test_transfersWhatWasSigned() public {
        vm.recordLogs();
        transfer(100);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(token.balanceOf(TO), 100, "balance");
        assertEq(logs.length, 1, "events");
        assertEq(logs[0].topics[0], IERC20.Transfer.selector, "event");
        assertEq(PERMIT2.nonceBitmap(owner, 3), 1 << 232, "bitmap");
        assertEq(vm.load(address(PERMIT2), bitmapSlot(owner, 3)), bytes32(uint256(1 << 232)), "slot");
    }

    function test_transfersLessThanWasSigned() public {
        transfer(1);
        assertEq(token.balanceOf(TO), 1, "balance");
    }

    function test_refusesMoreThanWasSigned() public {
        transferFails(101, abi.encodeWithSelector(IPermit2.InvalidAmount.selector, 100));
    }

    function test_takesTheSecondOfTheDeadline() public {
        vm.warp(NOW + 1);
        transferFails(100, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW));
        vm.warp(NOW);
        transfer(100);
    }

    function test_aNonceIsUsedOnceWhateverElseWasSigned() public {
        transfer(1);
        transferFails(1, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        permit.permitted.amount = 7;
        permit.deadline = NOW + 1;
        signature = sign();
        transferFails(7, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        permit.nonce = 1_001;
        signature = sign();
        transfer(7);
        assertEq(PERMIT2.nonceBitmap(owner, 3), 3 << 232, "bitmap");
    }

    function test_cancelledNoncesAreUsed() public {
        vm.expectEmit(address(PERMIT2));
        emit IPermit2.UnorderedNonceInvalidation(owner, 3, 1 << 232);
        vm.prank(owner);
        PERMIT2.invalidateUnorderedNonces(3, 1 << 232);
        transferFails(100, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
    }

    function test_refusesAnotherSpenderWitnessOrSigner() public {
        bytes memory reason = abi.encodeWithSelector(IPermit2.InvalidSigner.selector);
        vm.expectRevert(reason);
        PERMIT2.permitWitnessTransferFrom(permit, details(100), owner, WITNESS, WITNESS_TYPE, signature);
        vm.prank(SPENDER);
        vm.expectRevert(reason);
        PERMIT2.permitWitnessTransferFrom(permit, details(100), owner, "other", WITNESS_TYPE, signature);
        vm.prank(SPENDER);
        vm.expectRevert(reason);
        PERMIT2.permitWitnessTransferFrom(permit, details(100), owner, WITNESS, "Other witness)", signature);
        signature = signatureOver(0xb0b, digest());
        transferFails(100, reason);
    }

    /// @dev High s and the short form of EIP-2098 are taken; v of 0 and 1, and other lengths, are not.
    function test_whatItTakesForASignature() public {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER_KEY, digest());
        signature = abi.encodePacked(r, s, v - 27);
        transferFails(100, abi.encodeWithSelector(IPermit2.InvalidSignature.selector));
        bytes[3] memory others = [bytes(""), abi.encodePacked(r, s, v, v), abi.encodePacked(r)];
        for (uint256 i = 0; i < others.length; ++i) {
            signature = others[i];
            transferFails(100, abi.encodeWithSelector(IPermit2.InvalidSignatureLength.selector));
        }
        uint256 snapshot = vm.snapshotState();
        signature = abi.encodePacked(r, ORDER - uint256(s), v == 27 ? 28 : 27);
        transfer(100);
        vm.revertToState(snapshot);
        signature = abi.encodePacked(r, uint256(s) | (uint256(v - 27) << 255));
        transfer(100);
    }

    function test_asksAContractWallet() public {
        owner = deployCode("Mock1271Wallet", abi.encode(owner));
        fund(owner);
        transfer(100);
        owner = deployCode("Mock1271Wallet", abi.encode(TO));
        fund(owner);
        transferFails(100, abi.encodeWithSelector(IPermit2.InvalidContractSignature.selector));
        owner = address(new RevertingWallet());
        fund(owner);
        transferFails(100, errorData("no signatures today"));
    }

    function test_transfersWithoutAWitness() public {
        bytes32 typeHash = keccak256(
            "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
        );
        bytes memory fields = fieldsOf(typeHash, hashOf(permit.permitted));
        signature = signatureOver(OWNER_KEY, digestOf(keccak256(fields)));
        plainFails(101, abi.encodeWithSelector(IPermit2.InvalidAmount.selector, 100));
        vm.expectRevert(abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        PERMIT2.permitTransferFrom(permit, details(100), owner, signature);
        transferFails(100, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        vm.warp(NOW + 1);
        plainFails(101, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW));
        vm.warp(NOW);
        vm.prank(SPENDER);
        PERMIT2.permitTransferFrom(permit, details(60), owner, signature);
        assertEq(token.balanceOf(TO), 60, "balance");
        plainFails(60, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
    }

    function test_transfersSeveralWithOneNonce() public {
        IPermit2.PermitBatchTransferFrom memory several;
        several.permitted = new IPermit2.TokenPermissions[](2);
        several.permitted[0] = permit.permitted;
        several.permitted[1] = IPermit2.TokenPermissions(address(new FalseToken()), 50);
        (several.nonce, several.deadline) = (permit.nonce, permit.deadline);
        bytes32 typeHash = keccak256(
            "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
        );
        bytes32 hashes =
            keccak256(abi.encodePacked(hashOf(several.permitted[0]), hashOf(several.permitted[1])));
        signature = signatureOver(OWNER_KEY, digestOf(keccak256(fieldsOf(typeHash, hashes))));
        IPermit2.SignatureTransferDetails[] memory each = new IPermit2.SignatureTransferDetails[](2);
        (each[0], each[1]) = (details(60), details(51));
        severalFail(several, each, abi.encodeWithSelector(IPermit2.InvalidAmount.selector, 50));
        each[1].requestedAmount = 1;
        severalFail(several, each, errorData("TRANSFER_FROM_FAILED"));
        // Only a transfer of nothing passes a token that refuses all.
        each[1].requestedAmount = 0;
        several.nonce++;
        severalFail(several, each, abi.encodeWithSelector(IPermit2.InvalidSigner.selector));
        several.nonce--;
        vm.prank(SPENDER);
        PERMIT2.permitTransferFrom(several, each, owner, signature);
        assertEq(token.balanceOf(TO), 60, "balance");
        severalFail(several, each, abi.encodeWithSelector(IPermit2.InvalidNonce.selector));
        each = new IPermit2.SignatureTransferDetails[](1);
        severalFail(several, each, abi.encodeWithSelector(IPermit2.LengthMismatch.selector));
        several.deadline = NOW - 1;
        severalFail(several, each, abi.encodeWithSelector(IPermit2.SignatureExpired.selector, NOW - 1));
    }

    /// @dev Whatever the token says.
    function test_givesOneReasonForAllThatTheTokenRefuses() public {
        vm.prank(owner);
        token.approve(address(PERMIT2), 99);
        transferFails(100, errorData("TRANSFER_FROM_FAILED"));
        permit.permitted.token = address(new FalseToken());
        signature = sign();
        transferFails(100, errorData("TRANSFER_FROM_FAILED"));
    }

    function test_takesATokenThatReturnsNothing() public {
        MockUSDT usdt = MockUSDT(deployCode("MockUSDT", abi.encode("Tether USD", "USDT", uint8(6))));
        usdt.mint(owner, 100);
        vm.prank(owner);
        usdt.approve(address(PERMIT2), 100);
        permit.permitted.token = address(usdt);
        signature = sign();
        transfer(100);
        assertEq(usdt.balanceOf(TO), 100, "balance");
    }

    /// @dev So its success proves nothing.
    function test_succeedsWhereThereIsNoToken() public {
        permit.permitted.token = address(0xdead);
        signature = sign();
        transfer(100);
    }

    /// @dev Of the worked example of x402's own clients, on Base Sepolia.
    function test_theDomainIsThatOfTheChain() public {
        vm.chainId(84_532);
        assertEq(
            PERMIT2.DOMAIN_SEPARATOR(),
            0x010f27a92fb9a32622f44f001dc4d15706a85b33499cfc2ce9033113ab26592c,
            "domain separator"
        );
        signature = sign();
        transfer(100);
    }

    function testFuzz_agreesWithADigestMadeElsewhere(
        uint256 key,
        uint256 amount,
        uint256 taken,
        uint256 nonce,
        bytes32 witness
    ) public {
        owner = vm.addr(bound(key, 1, ORDER - 1));
        vm.assume(owner.code.length == 0);
        token.mint(owner, bound(amount, 0, type(uint128).max));
        permit.permitted.amount = token.balanceOf(owner);
        permit.nonce = nonce;
        vm.prank(owner);
        token.approve(address(PERMIT2), type(uint256).max);
        taken = bound(taken, 0, permit.permitted.amount);
        bytes memory signed =
            signatureOver(bound(key, 1, ORDER - 1), permit2Digest(permit, SPENDER, witness, WITNESS_TYPE));
        vm.prank(SPENDER);
        PERMIT2.permitWitnessTransferFrom(permit, details(taken), owner, witness, WITNESS_TYPE, signed);
        assertEq(token.balanceOf(TO), taken, "balance");
        assertEq(PERMIT2.nonceBitmap(owner, nonce / 256), 1 << (nonce % 256), "bitmap");
    }

    function transfer(uint256 amount) private {
        vm.prank(SPENDER);
        PERMIT2.permitWitnessTransferFrom(permit, details(amount), owner, WITNESS, WITNESS_TYPE, signature);
    }

    function transferFails(uint256 amount, bytes memory reason) private {
        vm.prank(SPENDER);
        vm.expectRevert(reason);
        PERMIT2.permitWitnessTransferFrom(permit, details(amount), owner, WITNESS, WITNESS_TYPE, signature);
    }

    function plainFails(uint256 amount, bytes memory reason) private {
        vm.prank(SPENDER);
        vm.expectRevert(reason);
        PERMIT2.permitTransferFrom(permit, details(amount), owner, signature);
    }

    function severalFail(
        IPermit2.PermitBatchTransferFrom memory several,
        IPermit2.SignatureTransferDetails[] memory each,
        bytes memory reason
    ) private {
        vm.prank(SPENDER);
        vm.expectRevert(reason);
        PERMIT2.permitTransferFrom(several, each, owner, signature);
    }

    function fieldsOf(bytes32 typeHash, bytes32 permitted) private view returns (bytes memory) {
        return abi.encode(typeHash, permitted, SPENDER, permit.nonce, permit.deadline);
    }

    function hashOf(IPermit2.TokenPermissions memory permitted) private pure returns (bytes32) {
        return keccak256(abi.encode(keccak256("TokenPermissions(address token,uint256 amount)"), permitted));
    }

    function digestOf(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", PERMIT2.DOMAIN_SEPARATOR(), structHash));
    }

    function fund(address account) private {
        token.mint(account, 1_000);
        vm.prank(account);
        token.approve(address(PERMIT2), type(uint256).max);
    }

    function digest() private view returns (bytes32) {
        return permit2Digest(permit, SPENDER, WITNESS, WITNESS_TYPE);
    }

    function sign() private view returns (bytes memory) {
        return signatureOver(OWNER_KEY, digest());
    }

    function details(uint256 amount) private pure returns (IPermit2.SignatureTransferDetails memory) {
        return IPermit2.SignatureTransferDetails(TO, amount);
    }

    function bitmapSlot(address account, uint256 word) private pure returns (bytes32) {
        return keccak256(abi.encode(word, keccak256(abi.encode(account, uint256(0)))));
    }
}

contract MockPermit2Test is Permit2Behaviour {
    function deploy() internal override {
        deployPermit2();
    }
}

contract OriginalPermit2Test is Permit2Behaviour {
    function deploy() internal override {
        deployOriginalPermit2();
    }
}

contract FalseToken {
    function transferFrom(address, address, uint256) external pure returns (bool) {
        return false;
    }
}

contract RevertingWallet {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        revert("no signatures today");
    }
}
