// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

import {MockUSDC} from "../mocks/MockUSDC.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {UsdcDeployment} from "./utils/UsdcDeployment.sol";
import {Vm} from "./utils/Vm.sol";

/**
 * @title The issuer's side of MockUSDC: owner, roles, minters, rescue
 * @dev Sources are contracts of Circle's stablecoin-evm, as FiatTokenV2_2 inherits them.
 */
contract MockUSDCIssuerTest is UsdcDeployment {
    address private constant ISSUER = address(uint160(uint256(keccak256("issuer"))));
    address private constant ALICE = address(uint160(uint256(keccak256("alice"))));
    address private constant BOB = address(uint160(uint256(keccak256("bob"))));

    bytes private blacklisted = errorData("Blacklistable: account is blacklisted");

    MockUSDC private usdc;

    struct Rule {
        address caller;
        bytes data;
        /// What it reverts with; empty when it succeeds.
        string reason;
        /// The event it emits when it succeeds, its indexed account, and its data.
        bytes32 topic;
        address account;
        bytes eventData;
    }

    function setUp() public {
        usdc = deployUsdc("USD Coin", "2", ISSUER);
    }

    /// @dev Source: FiatTokenV1.initialize; here one account gets every role, and the rescuer is nobody at first.
    function test_theIssuerHoldsEveryRole() public {
        assertEq(usdc.owner(), ISSUER, "owner");
        assertEq(usdc.masterMinter(), ISSUER, "masterMinter");
        assertEq(usdc.pauser(), ISSUER, "pauser");
        assertEq(usdc.blacklister(), ISSUER, "blacklister");
        assertEq(usdc.rescuer(), address(0), "rescuer");
        assertFalse(usdc.isMinter(ISSUER), "minter");
        vm.expectRevert(errorData("FiatToken: contract is already initialized"));
        usdc.initialize("USD Coin", "USDC", "2", 6, ALICE);
    }

    /// @dev Sources: Ownable.transferOwnership, Pausable.updatePauser, Blacklistable.updateBlacklister,
    /// FiatTokenV1.updateMasterMinter, Rescuable.updateRescuer.
    function test_theOwnerAloneNamesTheOthers() public {
        string memory notOwner = "Ownable: caller is not the owner";
        bytes4[5] memory functions = [
            usdc.updatePauser.selector,
            usdc.updateBlacklister.selector,
            usdc.updateMasterMinter.selector,
            usdc.updateRescuer.selector,
            usdc.transferOwnership.selector
        ];
        string[5] memory zero = [
            "Pausable: new pauser is the zero address",
            "Blacklistable: new blacklister is the zero address",
            "FiatToken: new masterMinter is the zero address",
            "Rescuable: new rescuer is the zero address",
            "Ownable: new owner is the zero address"
        ];
        bytes32[4] memory topics = [
            MockUSDC.PauserChanged.selector,
            MockUSDC.BlacklisterChanged.selector,
            MockUSDC.MasterMinterChanged.selector,
            MockUSDC.RescuerChanged.selector
        ];
        for (uint256 i = 0; i < functions.length; ++i) {
            bytes memory data = abi.encodeWithSelector(functions[i], ALICE);
            check(Rule(ALICE, data, notOwner, 0, address(0), ""));
            check(Rule(ISSUER, abi.encodeWithSelector(functions[i], address(0)), zero[i], 0, address(0), ""));
            if (i < topics.length) check(Rule(ISSUER, data, "", topics[i], ALICE, ""));
        }
        check(
            Rule(
                ISSUER,
                abi.encodeCall(usdc.transferOwnership, (BOB)),
                "",
                MockUSDC.OwnershipTransferred.selector,
                address(0),
                abi.encode(ISSUER, BOB)
            )
        );
        assertEq(usdc.owner(), BOB, "owner");
        assertEq(usdc.pauser(), ALICE, "pauser");
        assertEq(usdc.blacklister(), ALICE, "blacklister");
        assertEq(usdc.masterMinter(), ALICE, "masterMinter");
        assertEq(usdc.rescuer(), ALICE, "rescuer");
    }

    /// @dev Sources: Pausable.pause, unpause; Blacklistable.blacklist, unBlacklist; FiatTokenV1.configureMinter,
    /// removeMinter.
    function test_eachRoleHasItsFunctions() public {
        string[6] memory refusals = [
            "Pausable: caller is not the pauser",
            "Pausable: caller is not the pauser",
            "Blacklistable: caller is not the blacklister",
            "Blacklistable: caller is not the blacklister",
            "FiatToken: caller is not the masterMinter",
            "FiatToken: caller is not the masterMinter"
        ];
        bytes[6] memory calls = [
            abi.encodeCall(usdc.pause, ()),
            abi.encodeCall(usdc.unpause, ()),
            abi.encodeCall(usdc.blacklist, (BOB)),
            abi.encodeCall(usdc.unBlacklist, (BOB)),
            abi.encodeCall(usdc.configureMinter, (BOB, 7)),
            abi.encodeCall(usdc.removeMinter, (BOB))
        ];
        bytes32[6] memory topics = [
            MockUSDC.Pause.selector,
            MockUSDC.Unpause.selector,
            MockUSDC.Blacklisted.selector,
            MockUSDC.UnBlacklisted.selector,
            MockUSDC.MinterConfigured.selector,
            MockUSDC.MinterRemoved.selector
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            check(Rule(ALICE, calls[i], refusals[i], 0, address(0), ""));
            bytes memory eventData = i == 4 ? abi.encode(7) : bytes("");
            check(Rule(ISSUER, calls[i], "", topics[i], i < 2 ? address(0) : BOB, eventData));
        }
    }

    /// @dev Source: FiatTokenV1.configureMinter is whenNotPaused, removeMinter is not.
    function test_minters() public {
        vm.prank(ISSUER);
        assertTrue(usdc.configureMinter(BOB, 7), "returned");
        assertTrue(usdc.isMinter(BOB), "minter");
        assertEq(usdc.minterAllowance(BOB), 7, "allowance");
        vm.prank(ISSUER);
        usdc.pause();
        check(
            Rule(
                ISSUER, abi.encodeCall(usdc.configureMinter, (BOB, 8)), "Pausable: paused", 0, address(0), ""
            )
        );
        vm.prank(ISSUER);
        assertTrue(usdc.removeMinter(BOB), "returned");
        assertFalse(usdc.isMinter(BOB), "minter");
        assertEq(usdc.minterAllowance(BOB), 0, "allowance");
    }

    /// @dev Source: FiatTokenV1.mint, of which the mock leaves out `onlyMinters`.
    function test_anyoneMints() public {
        vm.recordLogs();
        vm.prank(ALICE);
        assertTrue(usdc.mint(BOB, 5), "returned");
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 2, "events");
        assertEq(logs[0].topics[0], MockUSDC.Mint.selector, "first event");
        assertEq(logs[0].topics[1], word(ALICE), "minter");
        assertEq(logs[0].topics[2], word(BOB), "recipient");
        assertEq(logs[1].topics[0], IERC20.Transfer.selector, "second event");
        assertEq(logs[1].topics[1], 0, "from");
        assertEq(usdc.totalSupply(), 5, "total supply");
        assertEq(usdc.balanceOf(BOB), 5, "balance");
    }

    /// @dev Source: FiatTokenV1.mint.
    function test_whatAMintObeys() public {
        mintFails(ALICE, address(0), 1, errorData("FiatToken: mint to the zero address"));
        mintFails(ALICE, BOB, 0, errorData("FiatToken: mint amount not greater than 0"));
        address[2] memory accounts = [ALICE, BOB];
        for (uint256 i = 0; i < accounts.length; ++i) {
            vm.prank(ISSUER);
            usdc.blacklist(accounts[i]);
            mintFails(ALICE, BOB, 1, blacklisted);
            vm.prank(ISSUER);
            usdc.unBlacklist(accounts[i]);
        }
        vm.prank(ISSUER);
        usdc.pause();
        mintFails(ALICE, BOB, 1, errorData("Pausable: paused"));
    }

    /// @dev Source: FiatTokenV1.mint: minters mint up to their allowance.
    function test_aMinterMintsUpToItsAllowance() public {
        vm.prank(ISSUER);
        usdc.configureMinter(ALICE, 7);
        mintFails(ALICE, BOB, 8, errorData("FiatToken: mint amount exceeds minterAllowance"));
        vm.prank(ALICE);
        usdc.mint(BOB, 3);
        assertEq(usdc.minterAllowance(ALICE), 4, "allowance left");
    }

    /// @dev Source: FiatTokenV1.burn.
    function test_aMinterBurns() public {
        usdc.mint(ALICE, 10);
        bytes memory data = abi.encodeCall(usdc.burn, (4));
        check(Rule(ALICE, data, "FiatToken: caller is not a minter", 0, address(0), ""));
        vm.prank(ISSUER);
        usdc.configureMinter(ALICE, 0);
        bytes memory nothing = abi.encodeCall(usdc.burn, (0));
        check(Rule(ALICE, nothing, "FiatToken: burn amount not greater than 0", 0, address(0), ""));
        bytes memory tooMuch = abi.encodeCall(usdc.burn, (11));
        check(Rule(ALICE, tooMuch, "FiatToken: burn amount exceeds balance", 0, address(0), ""));
        vm.prank(ISSUER);
        usdc.blacklist(ALICE);
        check(Rule(ALICE, data, "Blacklistable: account is blacklisted", 0, address(0), ""));
        vm.prank(ISSUER);
        usdc.unBlacklist(ALICE);
        check(Rule(ALICE, data, "", MockUSDC.Burn.selector, ALICE, abi.encode(4)));
        assertEq(usdc.balanceOf(ALICE), 6, "balance");
        assertEq(usdc.totalSupply(), 6, "total supply");
        vm.prank(ISSUER);
        usdc.pause();
        check(Rule(ALICE, data, "Pausable: paused", 0, address(0), ""));
    }

    /// @dev Sources: Rescuable.rescueERC20, and the SafeERC20 and Address of OpenZeppelin 3.
    function test_theRescuerSendsOnWhatTheTokenHolds() public {
        MisbehavingToken other = new MisbehavingToken();
        other.mint(address(usdc), 10);
        bytes memory data = abi.encodeCall(usdc.rescueERC20, (IERC20(address(other)), BOB, 4));
        check(Rule(ALICE, data, "Rescuable: caller is not the rescuer", 0, address(0), ""));
        vm.prank(ISSUER);
        usdc.updateRescuer(ALICE);
        vm.prank(ALICE);
        usdc.rescueERC20(IERC20(address(other)), BOB, 4);
        assertEq(other.balanceOf(BOB), 4, "rescued");

        other.behave(Behaviour.Correct, Behaviour.ReturnNothing);
        vm.prank(ALICE);
        usdc.rescueERC20(IERC20(address(other)), BOB, 1);
        other.behave(Behaviour.Correct, Behaviour.RevertSilently);
        check(Rule(ALICE, data, "SafeERC20: low-level call failed", 0, address(0), ""));
        other.behave(Behaviour.Correct, Behaviour.ReturnFalse);
        check(Rule(ALICE, data, "SafeERC20: ERC20 operation did not succeed", 0, address(0), ""));
        bytes memory noToken = abi.encodeCall(usdc.rescueERC20, (IERC20(BOB), BOB, 4));
        check(Rule(ALICE, noToken, "Address: call to non-contract", 0, address(0), ""));
        bytes memory itself = abi.encodeCall(usdc.rescueERC20, (IERC20(address(usdc)), BOB, 4));
        check(Rule(ALICE, itself, "Blacklistable: account is blacklisted", 0, address(0), ""));
    }

    function test_aTokenOfAnotherVersionSignsForIt() public {
        MockUSDC other = deployUsdc("Other Coin", "a version that is longer than one word: 32 bytes", ISSUER);
        assertEq(bytes(other.version()), "a version that is longer than one word: 32 bytes", "version");
        assertEq(
            other.DOMAIN_SEPARATOR(),
            keccak256(
                abi.encode(
                    keccak256(
                        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                    ),
                    keccak256("Other Coin"),
                    keccak256("a version that is longer than one word: 32 bytes"),
                    block.chainid,
                    address(other)
                )
            ),
            "domain separator"
        );
    }

    function mintFails(address caller, address to, uint256 amount, bytes memory reason) private {
        vm.prank(caller);
        vm.expectRevert(reason);
        usdc.mint(to, amount);
    }

    function check(Rule memory rule) private {
        vm.recordLogs();
        vm.prank(rule.caller);
        (bool success, bytes memory reason) = address(usdc).call(rule.data);
        if (bytes(rule.reason).length > 0) {
            assertFalse(success, rule.reason);
            assertEq(reason, errorData(rule.reason), "reason");
            return;
        }
        assertTrue(success, "success");
        Vm.Log memory log = vm.getRecordedLogs()[0];
        assertEq(log.topics[0], rule.topic, "event");
        if (rule.account != address(0)) assertEq(log.topics[1], word(rule.account), "account of the event");
        assertEq(log.data, rule.eventData, "data of the event");
    }

    function word(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }
}
