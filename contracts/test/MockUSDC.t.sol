// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {Mock7702Delegate} from "../mocks/Mock7702Delegate.sol";
import {MockGasBurningWallet} from "../mocks/MockGasBurningWallet.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {UsdcDeployment} from "./utils/UsdcDeployment.sol";
import {Vm} from "./utils/Vm.sol";

/// @title What MockUSDC must have in common with USDC
contract MockUSDCTest is UsdcDeployment {
    address private constant ISSUER = address(uint160(uint256(keccak256("issuer"))));
    address private constant ALICE = address(uint160(uint256(keccak256("alice"))));
    address private constant BOB = address(uint160(uint256(keccak256("bob"))));
    uint256 private constant PAYER_KEY = 0xa11ce;
    uint256 private constant NOW = 1_800_000_000;
    uint256 private constant VALUE = 10e6;

    bytes private blacklisted = errorData("Blacklistable: account is blacklisted");
    bytes private used = errorData("FiatTokenV2: authorization is used or canceled");
    bytes private invalidSignature = errorData("FiatTokenV2: invalid signature");

    MockUSDC private usdc;
    address private payer;

    struct Deployment {
        string name;
        uint256 chainId;
        address token;
        bytes32 domainSeparator;
    }

    function setUp() public {
        vm.warp(NOW);
        usdc = deployUsdc("USD Coin", "2", ISSUER);
        payer = vm.addr(PAYER_KEY);
        usdc.mint(payer, 1_000e6);
    }

    function test_describesItself() public view {
        assertEq(bytes(usdc.name()), "USD Coin", "name");
        assertEq(bytes(usdc.symbol()), "USDC", "symbol");
        assertEq(bytes(usdc.version()), "2", "version");
        assertEq(bytes(usdc.currency()), "USD", "currency");
        assertEq(usdc.decimals(), 6, "decimals");
        assertEq(usdc.owner(), ISSUER, "owner");
        assertEq(usdc.totalSupply(), 1_000e6, "total supply");
    }

    function test_typehashesAreThoseOfTheirPreimages() public view {
        assertEq(
            usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(),
            keccak256(
                "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
            ),
            "transfer"
        );
        assertEq(
            usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(),
            keccak256(
                "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
            ),
            "receive"
        );
        assertEq(
            usdc.CANCEL_AUTHORIZATION_TYPEHASH(),
            keccak256("CancelAuthorization(address authorizer,bytes32 nonce)"),
            "cancel"
        );
        assertEq(
            usdc.PERMIT_TYPEHASH(),
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
            "permit"
        );
    }

    /// @dev Carried to the addresses of the real tokens, on their chains, it has their domain separators.
    function test_domainSeparatorsAreThoseOfTheRealTokens() public {
        Deployment[5] memory deployments = [
            Deployment(
                "USD Coin",
                8453,
                0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913,
                0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f
            ),
            Deployment(
                "USDC",
                84532,
                0x036CbD53842c5426634e7929541eC2318f3dCF7e,
                0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818
            ),
            Deployment(
                "USD Coin",
                10,
                0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85,
                0x26d9c34bb1a1c312f69c53b2d93b8be20faafba63af2438c6811713c9b1f933f
            ),
            Deployment(
                "USDC",
                11155420,
                0x5fd84259d66Cd46123540766Be93DFE6D43130D7,
                0x09d038a3e46040fc37eb01174dbbcdb7981fbd8eafd9e1a857b1c67805dfb29e
            ),
            Deployment(
                "USD Coin",
                137,
                0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359,
                0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca
            )
        ];
        for (uint256 i = 0; i < deployments.length; ++i) {
            Deployment memory deployment = deployments[i];
            MockUSDC original = deployUsdc(deployment.name, "2", ISSUER);
            vm.etch(deployment.token, address(original).code);
            // Name and owner, and the proxy's implementation.
            bytes32[3] memory slots = [bytes32(0), bytes32(uint256(4)), IMPLEMENTATION_SLOT];
            for (uint256 j = 0; j < slots.length; ++j) {
                vm.store(deployment.token, slots[j], vm.load(address(original), slots[j]));
            }
            vm.chainId(deployment.chainId);
            assertEq(
                MockUSDC(deployment.token).DOMAIN_SEPARATOR(), deployment.domainSeparator, "domain separator"
            );
            assertEq(MockUSDC(deployment.token).owner(), ISSUER, "owner");
        }
    }

    function test_transferWithAuthorization_emitsConsecutiveEvents() public {
        vm.recordLogs();
        transferWithAuthorization(ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 2, "events");
        assertEq(logs[0].topics[0], MockUSDC.AuthorizationUsed.selector, "first event");
        assertEq(logs[0].topics[2], "nonce", "authorization nonce");
        assertEq(logs[1].topics[0], IERC20.Transfer.selector, "second event");
        assertEq(logs[1].data, abi.encode(VALUE), "value");
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
        assertTrue(usdc.authorizationState(payer, "nonce"), "used");
    }

    function test_transferWithAuthorization_takesVRS() public {
        (uint8 v, bytes32 r, bytes32 s) = signTransfer(ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        usdc.transferWithAuthorization(payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", v, r, s);
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
    }

    /// @dev Pause, blacklist, time, use, signature, balance: what comes first gives the reason.
    function test_transferWithAuthorization_checksInOrder() public {
        bytes memory signature = new bytes(65);
        uint256 tooMuch = 1_000e6 + 1;
        usdc.cancelAuthorization(payer, "cancelled", signCancellation("cancelled"));

        vm.prank(ISSUER);
        usdc.pause();
        vm.prank(ISSUER);
        usdc.blacklist(ALICE);
        expect(errorData("Pausable: paused"), ALICE, tooMuch, NOW, NOW, "cancelled", signature);
        vm.prank(ISSUER);
        usdc.unpause();
        expect(blacklisted, ALICE, tooMuch, NOW, NOW, "cancelled", signature);
        vm.prank(ISSUER);
        usdc.unBlacklist(ALICE);
        vm.prank(ISSUER);
        usdc.blacklist(payer);
        expect(blacklisted, ALICE, tooMuch, NOW, NOW, "cancelled", signature);
        vm.prank(ISSUER);
        usdc.unBlacklist(payer);
        expect(
            errorData("FiatTokenV2: authorization is not yet valid"),
            ALICE,
            tooMuch,
            NOW,
            NOW,
            "cancelled",
            signature
        );
        expect(
            errorData("FiatTokenV2: authorization is expired"),
            ALICE,
            tooMuch,
            NOW - 1,
            NOW,
            "cancelled",
            signature
        );
        expect(used, ALICE, tooMuch, NOW - 1, NOW + 1, "cancelled", signature);
        expect(
            errorData("ECRecover: invalid signature 'v' value"),
            ALICE,
            tooMuch,
            NOW - 1,
            NOW + 1,
            "nonce",
            signature
        );
        expect(
            errorData("ERC20: transfer amount exceeds balance"),
            ALICE,
            tooMuch,
            NOW - 1,
            NOW + 1,
            "nonce",
            packed(ALICE, tooMuch, NOW - 1, NOW + 1, "nonce")
        );
        expect(
            errorData("ERC20: transfer to the zero address"),
            address(0),
            VALUE,
            NOW - 1,
            NOW + 1,
            "nonce",
            packed(address(0), VALUE, NOW - 1, NOW + 1, "nonce")
        );
    }

    function test_transferWithAuthorization_hasStrictTimes() public {
        bytes memory signature = packed(ALICE, VALUE, NOW + 10, NOW + 20, "nonce");
        vm.warp(NOW + 10);
        expect(
            errorData("FiatTokenV2: authorization is not yet valid"),
            ALICE,
            VALUE,
            NOW + 10,
            NOW + 20,
            "nonce",
            signature
        );
        vm.warp(NOW + 20);
        expect(
            errorData("FiatTokenV2: authorization is expired"),
            ALICE,
            VALUE,
            NOW + 10,
            NOW + 20,
            "nonce",
            signature
        );
        vm.warp(NOW + 19);
        usdc.transferWithAuthorization(payer, ALICE, VALUE, NOW + 10, NOW + 20, "nonce", signature);
    }

    function test_receiveWithAuthorization_isForThePayee() public {
        bytes memory signature =
            packed(usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(), ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        vm.expectRevert(errorData("FiatTokenV2: caller must be the payee"));
        usdc.receiveWithAuthorization(payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", signature);

        // One kind of authorization is not the other.
        expect(invalidSignature, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", signature);

        vm.prank(ALICE);
        usdc.receiveWithAuthorization(payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", signature);
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
    }

    function test_receiveWithAuthorization_takesVRS() public {
        (uint8 v, bytes32 r, bytes32 s) = sign(
            transferHash(usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(), ALICE, VALUE, NOW - 1, NOW + 1, "nonce")
        );
        vm.prank(ALICE);
        usdc.receiveWithAuthorization(payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", v, r, s);
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
    }

    function test_cancelAuthorization_usesTheNonceUp() public {
        vm.recordLogs();
        usdc.cancelAuthorization(payer, "nonce", signCancellation("nonce"));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 1, "events");
        assertEq(logs[0].topics[0], MockUSDC.AuthorizationCanceled.selector, "event");
        assertTrue(usdc.authorizationState(payer, "nonce"), "used");
        expect(used, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", packed(ALICE, VALUE, NOW - 1, NOW + 1, "nonce"));

        bytes memory again = signCancellation("nonce");
        vm.expectRevert(used);
        usdc.cancelAuthorization(payer, "nonce", again);
        vm.expectRevert(invalidSignature);
        usdc.cancelAuthorization(payer, "other", again);
    }

    function test_cancelAuthorization_takesVRS() public {
        (uint8 v, bytes32 r, bytes32 s) =
            sign(keccak256(abi.encode(usdc.CANCEL_AUTHORIZATION_TYPEHASH(), payer, bytes32("nonce"))));
        usdc.cancelAuthorization(payer, "nonce", v, r, s);
        assertTrue(usdc.authorizationState(payer, "nonce"), "used");
    }

    function test_cancelAuthorization_isOpenToBlacklistedAccountsButNotWhilePaused() public {
        vm.prank(ISSUER);
        usdc.blacklist(payer);
        usdc.cancelAuthorization(payer, "nonce", signCancellation("nonce"));
        vm.prank(ISSUER);
        usdc.pause();
        bytes memory signature = signCancellation("other");
        vm.expectRevert(errorData("Pausable: paused"));
        usdc.cancelAuthorization(payer, "other", signature);
    }

    /// @dev A plain signature of an account that has code goes to the code, never to recovery.
    function test_accountsWithCodeAreAskedByERC1271() public {
        bytes memory signature = packed(ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        bytes[3] memory refusing = [
            deployCode("MockGasBurningWallet", "").code,
            deployCode("Mock1271Wallet", abi.encode(BOB)).code,
            address(new ShortAnswerWallet()).code
        ];
        for (uint256 i = 0; i < refusing.length; ++i) {
            vm.etch(payer, refusing[i]);
            vm.expectRevert(invalidSignature);
            usdc.transferWithAuthorization{gas: 1_000_000}(
                payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", signature
            );
        }
        vm.etch(payer, deployCode("Mock7702Delegate", "").code);
        expect(invalidSignature, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", "");
        usdc.transferWithAuthorization(payer, ALICE, VALUE, NOW - 1, NOW + 1, "nonce", signature);
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
    }

    function test_aWalletTakesItsOwnersSignature() public {
        Mock1271Wallet wallet = Mock1271Wallet(deployCode("Mock1271Wallet", abi.encode(payer)));
        bytes32 digest = keccak256("message");
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, digest);
        assertTrue(wallet.isValidSignature(digest, abi.encodePacked(r, s, v)) == 0x1626ba7e, "owner's");
        assertTrue(wallet.isValidSignature("other", abi.encodePacked(r, s, v)) == 0xffffffff, "other message");
        assertTrue(wallet.isValidSignature(digest, "") == 0xffffffff, "empty");
        assertEq(wallet.owner(), payer, "owner");
    }

    function test_aDelegatedAccountTakesEther() public {
        vm.etch(payer, deployCode("Mock7702Delegate", "").code);
        (bool success,) = payer.call{value: 1}("");
        assertTrue(success, "took ether");
    }

    function test_transfer() public {
        vm.prank(payer);
        assertTrue(usdc.transfer(ALICE, VALUE), "returned");
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");

        vm.prank(ALICE);
        vm.expectRevert(errorData("ERC20: transfer amount exceeds balance"));
        usdc.transfer(BOB, VALUE + 1);
        vm.prank(ALICE);
        vm.expectRevert(errorData("ERC20: transfer to the zero address"));
        usdc.transfer(address(0), VALUE);
        vm.prank(address(0));
        vm.expectRevert(errorData("ERC20: transfer from the zero address"));
        usdc.transfer(BOB, 0);
    }

    function test_transferToOneselfChangesNothing() public {
        vm.prank(payer);
        usdc.transfer(payer, VALUE);
        assertEq(usdc.balanceOf(payer), 1_000e6, "balance");
    }

    function test_allowances() public {
        vm.prank(payer);
        assertTrue(usdc.approve(ALICE, 5), "returned");
        vm.prank(payer);
        usdc.increaseAllowance(ALICE, 10);
        vm.prank(payer);
        usdc.decreaseAllowance(ALICE, 5);
        assertEq(usdc.allowance(payer, ALICE), 10, "allowance");
        vm.prank(ALICE);
        assertTrue(usdc.transferFrom(payer, BOB, 4), "returned");
        assertEq(usdc.balanceOf(BOB), 4, "balance");
        assertEq(usdc.allowance(payer, ALICE), 6, "allowance left");

        vm.prank(ALICE);
        vm.expectRevert(errorData("ERC20: transfer amount exceeds allowance"));
        usdc.transferFrom(payer, BOB, 7);
        vm.prank(payer);
        vm.expectRevert(errorData("ERC20: decreased allowance below zero"));
        usdc.decreaseAllowance(ALICE, 7);
        vm.prank(payer);
        vm.expectRevert(errorData("ERC20: approve to the zero address"));
        usdc.approve(address(0), 1);
        vm.prank(address(0));
        vm.expectRevert(errorData("ERC20: approve from the zero address"));
        usdc.approve(ALICE, 1);
    }

    function test_permit() public {
        bytes32 structHash = keccak256(abi.encode(usdc.PERMIT_TYPEHASH(), payer, ALICE, VALUE, 0, NOW));
        (uint8 v, bytes32 r, bytes32 s) = sign(structHash);
        usdc.permit(payer, ALICE, VALUE, NOW, v, r, s);
        assertEq(usdc.allowance(payer, ALICE), VALUE, "allowance");
        assertEq(usdc.nonces(payer), 1, "nonce");

        vm.expectRevert(errorData("EIP2612: invalid signature"));
        usdc.permit(payer, ALICE, VALUE, NOW, abi.encodePacked(r, s, v));
        vm.warp(NOW + 1);
        vm.expectRevert(errorData("FiatTokenV2: permit is expired"));
        usdc.permit(payer, ALICE, VALUE, NOW, abi.encodePacked(r, s, v));
    }

    /// @dev Source: FiatTokenV1.transfer, transferFrom; FiatTokenV2_2._isBlacklisted.
    function test_blacklistedAccountsNeitherPayNorReceiveNorSpend() public {
        usdc.mint(ALICE, VALUE);
        vm.prank(payer);
        usdc.approve(BOB, VALUE);
        vm.prank(payer);
        usdc.approve(ALICE, VALUE);
        vm.prank(ISSUER);
        usdc.blacklist(ALICE);
        assertTrue(usdc.isBlacklisted(ALICE), "blacklisted");
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");

        vm.prank(payer);
        vm.expectRevert(blacklisted);
        usdc.transfer(ALICE, 1);
        vm.prank(ALICE);
        vm.expectRevert(blacklisted);
        usdc.transfer(BOB, 1);
        vm.prank(BOB);
        vm.expectRevert(blacklisted);
        usdc.transferFrom(payer, ALICE, 1);
        vm.prank(ALICE);
        vm.expectRevert(blacklisted);
        usdc.transferFrom(payer, BOB, 1);

        vm.prank(ISSUER);
        usdc.unBlacklist(ALICE);
        assertFalse(usdc.isBlacklisted(ALICE), "blacklisted");
        vm.prank(ALICE);
        usdc.transfer(BOB, VALUE);
        assertEq(usdc.balanceOf(BOB), VALUE, "balance");
    }

    /// @dev Source: FiatTokenV2_2.approve, increaseAllowance, decreaseAllowance, permit: V2.1 asked for the
    /// blacklist, V2.2 does not.
    function test_allowancesDoNotLookAtTheBlacklist() public {
        address[2] memory accounts = [payer, ALICE];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.prank(ISSUER);
            usdc.blacklist(accounts[i]);
            vm.prank(payer);
            usdc.approve(ALICE, 10);
            vm.prank(payer);
            usdc.increaseAllowance(ALICE, 2);
            vm.prank(payer);
            usdc.decreaseAllowance(ALICE, 5);
            assertEq(usdc.allowance(payer, ALICE), 7, "allowance");
            (uint8 v, bytes32 r, bytes32 s) = sign(permitHash(NOW));
            usdc.permit(payer, ALICE, VALUE, NOW, v, r, s);
            assertEq(usdc.allowance(payer, ALICE), VALUE, "allowance by permit");
            vm.prank(ISSUER);
            usdc.unBlacklist(accounts[i]);
        }
    }

    /// @dev Source: FiatTokenV1.approve and its like: whenNotPaused.
    function test_pauseStopsAllowances() public {
        (uint8 v, bytes32 r, bytes32 s) = sign(permitHash(NOW));
        vm.prank(ISSUER);
        usdc.pause();
        bytes[5] memory calls = [
            abi.encodeCall(usdc.approve, (ALICE, 1)),
            abi.encodeCall(usdc.increaseAllowance, (ALICE, 1)),
            abi.encodeCall(usdc.decreaseAllowance, (ALICE, 0)),
            abi.encodeWithSignature(
                "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
                payer,
                ALICE,
                VALUE,
                NOW,
                v,
                r,
                s
            ),
            abi.encodeWithSignature(
                "permit(address,address,uint256,uint256,bytes)",
                payer,
                ALICE,
                VALUE,
                NOW,
                abi.encodePacked(r, s, v)
            )
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            (bool success, bytes memory reason) = address(usdc).call(calls[i]);
            assertFalse(success, "paused");
            assertEq(reason, errorData("Pausable: paused"), "reason");
        }
    }

    /// @dev Source: FiatTokenV2_2.initializeV2_2, _blacklist(address(this)).
    function test_theTokenItselfIsBlacklisted() public {
        assertTrue(usdc.isBlacklisted(address(usdc)), "blacklisted");
        vm.prank(payer);
        vm.expectRevert(blacklisted);
        usdc.transfer(address(usdc), 1);
        expect(blacklisted, address(usdc), VALUE, NOW - 1, NOW + 1, "nonce", "");
        vm.expectRevert(blacklisted);
        usdc.transferWithAuthorization(address(usdc), ALICE, VALUE, NOW - 1, NOW + 1, "nonce", "");
        vm.prank(address(usdc));
        vm.expectRevert(blacklisted);
        usdc.receiveWithAuthorization(payer, address(usdc), VALUE, NOW - 1, NOW + 1, "nonce", "");
        vm.expectRevert(blacklisted);
        usdc.mint(address(usdc), 1);
    }

    /// @dev Source: Pausable.whenNotPaused at FiatTokenV1.transfer.
    function test_pauseStopsTransfers() public {
        vm.prank(ISSUER);
        usdc.pause();
        assertTrue(usdc.paused(), "paused");
        vm.prank(payer);
        vm.expectRevert(errorData("Pausable: paused"));
        usdc.transfer(ALICE, 1);
        vm.expectRevert(errorData("Pausable: paused"));
        usdc.transferFrom(payer, ALICE, 1);
        vm.prank(ISSUER);
        usdc.unpause();
        vm.prank(payer);
        usdc.transfer(ALICE, 1);
        assertEq(usdc.balanceOf(ALICE), 1, "balance");
    }

    /// @dev Source: FiatTokenV2_2._setBalance.
    function testFuzz_balancesStayBelowTheBlacklistBit(uint256 held, uint256 more) public {
        held = bound(held, 1, (1 << 255) - 1);
        usdc.mint(ALICE, held);
        more = bound(more, 1, type(uint256).max - held - 1_000e6);
        if (more > (1 << 255) - 1 - held) {
            vm.expectRevert(errorData("FiatTokenV2_2: Balance exceeds (2^255 - 1)"));
            usdc.mint(ALICE, more);
        } else {
            usdc.mint(ALICE, more);
            assertEq(usdc.balanceOf(ALICE), held + more, "balance");
            assertFalse(usdc.isBlacklisted(ALICE), "blacklisted");
        }
    }

    /// @dev Source: the storage layout of FiatTokenV2_2. Tools write balances to slot 9, allowances to slot 10.
    function test_balancesAndAllowancesStandInTheSlotsOfUsdc() public {
        bytes32 slot = keccak256(abi.encode(ALICE, uint256(9)));
        vm.store(address(usdc), slot, bytes32(uint256(5)));
        assertEq(usdc.balanceOf(ALICE), 5, "balance");
        vm.store(address(usdc), slot, bytes32(uint256(1 << 255 | 5)));
        assertEq(usdc.balanceOf(ALICE), 5, "balance");
        assertTrue(usdc.isBlacklisted(ALICE), "blacklisted");
        bytes32 allowances = keccak256(abi.encode(payer, uint256(10)));
        vm.store(address(usdc), keccak256(abi.encode(BOB, allowances)), bytes32(uint256(7)));
        assertEq(usdc.allowance(payer, BOB), 7, "allowance");
        assertEq(vm.load(address(usdc), bytes32(uint256(11))), bytes32(usdc.totalSupply()), "total supply");
        assertEq(
            vm.load(address(usdc), bytes32(uint256(1))), bytes32(uint256(uint160(ISSUER))), "pauser and pause"
        );
    }

    /// @dev Source: SafeMath's texts.
    function test_sumsThatOverflow() public {
        vm.prank(payer);
        usdc.approve(ALICE, type(uint256).max);
        vm.prank(payer);
        vm.expectRevert(errorData("SafeMath: addition overflow"));
        usdc.increaseAllowance(ALICE, 1);
        vm.expectRevert(errorData("SafeMath: addition overflow"));
        usdc.mint(ALICE, type(uint256).max);
    }

    /// @dev Source: the calldata that solc 0.6.12 decodes without ABIEncoderV2: what is above an address's 160 bits,
    /// or above the 8 of v, is not looked at.
    function test_unusedUpperBitsAreIgnored() public {
        uint256 dirt = uint256(0xbad) << 160;
        vm.prank(payer);
        call(abi.encodeWithSelector(usdc.transfer.selector, uint256(uint160(ALICE)) | dirt, VALUE), "");
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
        (bool success, bytes memory result) = address(usdc)
            .call(abi.encodeWithSelector(usdc.balanceOf.selector, uint256(uint160(ALICE)) | dirt));
        assertTrue(success, "asked");
        assertEq(abi.decode(result, (uint256)), VALUE, "balance");

        (uint8 v, bytes32 r, bytes32 s) = signTransfer(ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        call(
            abi.encodeWithSignature(
                "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
                uint256(uint160(payer)) | dirt,
                uint256(uint160(ALICE)) | dirt,
                VALUE,
                NOW - 1,
                NOW + 1,
                bytes32("nonce"),
                uint256(v) | 0x100,
                r,
                s
            ),
            ""
        );
        assertEq(usdc.balanceOf(ALICE), 2 * VALUE, "balance");
    }

    /// @dev Source: the same decoder: a signature that is said to lie outside of the calldata reverts without a reason,
    /// before anything else is looked at. Unusual offsets within it are taken.
    function test_signaturesAtOtherOffsets() public {
        bytes memory signature = packed(ALICE, VALUE, NOW - 1, NOW + 1, "nonce");
        uint256[4] memory impossible = [type(uint256).max, uint256(1) << 64, 0x1000, 0xe0 + 96];
        vm.prank(ISSUER);
        usdc.pause();
        for (uint256 i = 0; i < impossible.length; ++i) {
            (bool success, bytes memory reason) =
                address(usdc).call(authorizationCall(impossible[i], 65, signature));
            assertFalse(success, "impossible offset");
            assertEq(reason, bytes(""), "reason");
        }
        (bool longer, bytes memory none) = address(usdc).call(authorizationCall(0xe0, 66, signature));
        assertFalse(longer, "longer than the calldata");
        assertEq(none, bytes(""), "reason");

        vm.prank(ISSUER);
        usdc.unpause();
        call(authorizationCall(0xe0 + 32, 65, abi.encodePacked(uint256(65), signature)), "");
        assertEq(usdc.balanceOf(ALICE), VALUE, "balance");
    }

    /// @dev `offset` of the signature, what stands there, and one word before when the offset leaves room for it.
    function authorizationCall(uint256 offset, uint256 length, bytes memory tail)
        private
        view
        returns (bytes memory)
    {
        return abi.encodePacked(
            bytes4(
                keccak256("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)")
            ),
            abi.encode(payer, ALICE, VALUE, NOW - 1, NOW + 1, bytes32("nonce"), offset),
            length,
            tail
        );
    }

    function call(bytes memory data, bytes memory reason) private {
        (bool success, bytes memory result) = address(usdc).call(data);
        assertTrue(success == (reason.length == 0), "success");
        if (!success) assertEq(result, reason, "reason");
    }

    function permitHash(uint256 deadline) private view returns (bytes32) {
        return
            keccak256(abi.encode(usdc.PERMIT_TYPEHASH(), payer, ALICE, VALUE, usdc.nonces(payer), deadline));
    }

    function expect(
        bytes memory reason,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        vm.expectRevert(reason);
        usdc.transferWithAuthorization(payer, to, value, validAfter, validBefore, nonce, signature);
    }

    function transferWithAuthorization(
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce
    ) private {
        usdc.transferWithAuthorization(
            payer,
            to,
            value,
            validAfter,
            validBefore,
            nonce,
            packed(to, value, validAfter, validBefore, nonce)
        );
    }

    function packed(address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce)
        private
        view
        returns (bytes memory)
    {
        return packed(usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(), to, value, validAfter, validBefore, nonce);
    }

    function packed(
        bytes32 typehash,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce
    ) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) =
            sign(transferHash(typehash, to, value, validAfter, validBefore, nonce));
        return abi.encodePacked(r, s, v);
    }

    function signTransfer(address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce)
        private
        view
        returns (uint8, bytes32, bytes32)
    {
        return sign(
            transferHash(
                usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(), to, value, validAfter, validBefore, nonce
            )
        );
    }

    function signCancellation(bytes32 nonce) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) =
            sign(keccak256(abi.encode(usdc.CANCEL_AUTHORIZATION_TYPEHASH(), payer, nonce)));
        return abi.encodePacked(r, s, v);
    }

    function transferHash(
        bytes32 typehash,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce
    ) private view returns (bytes32) {
        return keccak256(abi.encode(typehash, payer, to, value, validAfter, validBefore, nonce));
    }

    function sign(bytes32 structHash) private view returns (uint8, bytes32, bytes32) {
        return vm.sign(PAYER_KEY, keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), structHash)));
    }
}

/// @dev Answers with four bytes where ERC-1271 wants a whole word.
contract ShortAnswerWallet {
    fallback() external {
        assembly ("memory-safe") {
            mstore(0, hex"1626ba7e")
            return(0, 4)
        }
    }
}
