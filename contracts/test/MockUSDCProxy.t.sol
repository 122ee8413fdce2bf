// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../mocks/MockUSDC.sol";
import {MockUSDCProxy} from "../mocks/MockUSDCProxy.sol";
import {UsdcDeployment} from "./utils/UsdcDeployment.sol";
import {Vm} from "./utils/Vm.sol";

/**
 * @title What the proxy in front of MockUSDC must have in common with that of USDC
 * @dev Sources: FiatTokenProxy, AdminUpgradeabilityProxy, UpgradeabilityProxy and Proxy of Circle's stablecoin-evm.
 */
contract MockUSDCProxyTest is UsdcDeployment {
    address private constant ISSUER = address(uint160(uint256(keccak256("issuer"))));
    address private constant ALICE = address(uint160(uint256(keccak256("alice"))));
    // keccak256("org.zeppelinos.proxy.admin")
    bytes32 private constant ADMIN_SLOT = 0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b;

    bytes private adminRefused = errorData("Cannot call fallback function from the proxy admin");

    MockUSDC private usdc;
    MockUSDCProxy private proxy;

    function setUp() public {
        usdc = deployUsdc("USD Coin", "2", ISSUER);
        proxy = MockUSDCProxy(payable(address(usdc)));
    }

    /// @dev Source: UpgradeabilityProxy, AdminUpgradeabilityProxy: the two slots.
    function test_keepsAdminAndImplementationInTheSlotsOfZeppelinos() public view {
        assertEq(IMPLEMENTATION_SLOT, keccak256("org.zeppelinos.proxy.implementation"), "implementation slot");
        assertEq(ADMIN_SLOT, keccak256("org.zeppelinos.proxy.admin"), "admin slot");
        assertEq(word(proxy.implementation()), vm.load(address(proxy), IMPLEMENTATION_SLOT), "implementation");
        assertEq(word(proxy.admin()), vm.load(address(proxy), ADMIN_SLOT), "admin");
        assertEq(proxy.admin(), PROXY_ADMIN, "admin");
    }

    /// @dev Source: AdminUpgradeabilityProxy._willFallback.
    function test_itsAdminCannotCallTheToken() public {
        vm.prank(PROXY_ADMIN);
        vm.expectRevert(adminRefused);
        usdc.balanceOf(ALICE);
        vm.prank(PROXY_ADMIN);
        vm.expectRevert(adminRefused);
        usdc.mint(ALICE, 1);
    }

    /// @dev Source: AdminUpgradeabilityProxy.ifAdmin. For all others the token is asked, which has no such function.
    function test_nobodyElseCanChangeIt() public {
        address implementation = deployCode("MockUSDC", "");
        vm.expectRevert(bytes(""));
        proxy.upgradeTo(implementation);
        vm.expectRevert(bytes(""));
        proxy.upgradeToAndCall(implementation, "");
        vm.expectRevert(bytes(""));
        proxy.changeAdmin(ALICE);
    }

    /// @dev Source: UpgradeabilityProxy._upgradeTo, _setImplementation.
    function test_itsAdminUpgradesItAndTheStateStays() public {
        usdc.mint(ALICE, 5);
        address implementation = deployCode("MockUSDC", "");
        vm.recordLogs();
        vm.prank(PROXY_ADMIN);
        proxy.upgradeTo(implementation);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs[0].topics[0], MockUSDCProxy.Upgraded.selector, "event");
        assertEq(logs[0].data, abi.encode(implementation), "implementation of the event");
        assertEq(proxy.implementation(), implementation, "implementation");
        assertEq(usdc.balanceOf(ALICE), 5, "balance");

        vm.prank(PROXY_ADMIN);
        vm.expectRevert(errorData("Cannot set a proxy implementation to a non-contract address"));
        proxy.upgradeTo(ALICE);
    }

    /// @dev Source: AdminUpgradeabilityProxy.upgradeToAndCall: the call comes from the proxy itself.
    function test_itsAdminUpgradesItAndCalls() public {
        address implementation = deployCode("MockUSDC", "");
        vm.prank(PROXY_ADMIN);
        proxy.upgradeToAndCall(implementation, abi.encodeCall(MockUSDC.approve, (ALICE, 7)));
        assertEq(usdc.allowance(address(proxy), ALICE), 7, "allowance");
        vm.prank(PROXY_ADMIN);
        vm.expectRevert(bytes(""));
        proxy.upgradeToAndCall(implementation, abi.encodeCall(MockUSDC.pause, ()));
    }

    /// @dev Source: AdminUpgradeabilityProxy.changeAdmin.
    function test_itsAdminNamesAnother() public {
        vm.prank(PROXY_ADMIN);
        vm.expectRevert(errorData("Cannot change the admin of a proxy to the zero address"));
        proxy.changeAdmin(address(0));

        vm.recordLogs();
        vm.prank(PROXY_ADMIN);
        proxy.changeAdmin(ALICE);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs[0].topics[0], MockUSDCProxy.AdminChanged.selector, "event");
        assertEq(logs[0].data, abi.encode(PROXY_ADMIN, ALICE), "data of the event");
        assertEq(proxy.admin(), ALICE, "admin");
        vm.prank(PROXY_ADMIN);
        assertEq(usdc.balanceOf(ALICE), 0, "the former admin calls the token");
    }

    /// @dev Source: Proxy.fallback is payable, and no function of the token is.
    function test_takesNoEther() public {
        (bool success,) = address(proxy).call{value: 1}("");
        assertFalse(success, "took ether");
        (success,) = address(proxy).call{value: 1}(abi.encodeCall(MockUSDC.approve, (ALICE, 1)));
        assertFalse(success, "took ether with a call");
    }

    function test_itsConstructorFailsAsTheInitializationDoes() public {
        address implementation = deployCode("MockUSDC", "");
        vm.expectRevert(errorData("FiatToken: new owner is the zero address"));
        new MockUSDCProxy(
            implementation,
            PROXY_ADMIN,
            abi.encodeCall(MockUSDC.initialize, ("USD Coin", "USDC", "2", 6, address(0)))
        );
    }

    function word(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }
}
