// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {
    IAccessControlDefaultAdminRules
} from "@openzeppelin/contracts/access/extensions/IAccessControlDefaultAdminRules.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";

contract RolesTest is FacilitatorTest {
    address private constant SECOND_OPERATOR = address(uint160(uint256(keccak256("second operator"))));

    IAccessControlDefaultAdminRules private roles;
    bytes32 private operatorRole;
    IX402Facilitator.Payment private payment;

    function setUp() public override {
        super.setUp();
        roles = IAccessControlDefaultAdminRules(address(facilitator));
        operatorRole = facilitator.OPERATOR_ROLE();
        payment = pay(PAYER_KEY, 10e6, "nonce");
    }

    function test_eachAccountHasItsRoleAndNoOther() public view {
        bytes32[4] memory all =
            [bytes32(0), operatorRole, facilitator.RECOVERER_ROLE(), facilitator.PAUSER_ROLE()];
        address[4] memory accounts = [ADMIN, OPERATOR, RECOVERER, PAUSER];
        for (uint256 i = 0; i < all.length; ++i) {
            for (uint256 j = 0; j < accounts.length; ++j) {
                assertTrue(roles.hasRole(all[i], accounts[j]) == (i == j), "role");
            }
        }
        assertEq(roles.defaultAdmin(), ADMIN, "admin");
        assertEq(roles.defaultAdminDelay(), ADMIN_DELAY, "admin delay");
    }

    function test_rolesLeftOutAreGrantedToNobody() public {
        facilitator = deployFacilitator(new address[](0), address(0), address(0));
        roles = IAccessControlDefaultAdminRules(address(facilitator));
        assertFalse(roles.hasRole(facilitator.RECOVERER_ROLE(), address(0)), "recoverer");
        assertFalse(roles.hasRole(facilitator.PAUSER_ROLE(), address(0)), "pauser");
        refusesToSettle(OPERATOR);
    }

    function test_onlyOperatorsSettle() public {
        address[4] memory others = [ADMIN, RECOVERER, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            refusesToSettle(others[i]);
        }
        settleAs(OPERATOR);
    }

    function test_onlyRecoverersForward() public {
        bytes32 role = facilitator.RECOVERER_ROLE();
        address[4] memory others = [ADMIN, OPERATOR, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(unauthorized(others[i], role));
            facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, RECIPIENT);
        }
    }

    function test_onlyTheAdminSetsTheForwardLimit() public {
        address[4] memory others = [OPERATOR, RECOVERER, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(unauthorized(others[i], 0));
            facilitator.setForwardLimit(address(usdc), 1);
        }
    }

    function test_onlyPausersPause() public {
        bytes32 role = facilitator.PAUSER_ROLE();
        address[4] memory others = [ADMIN, OPERATOR, RECOVERER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(unauthorized(others[i], role));
            facilitator.pause();
            vm.prank(others[i]);
            vm.expectRevert(unauthorized(others[i], role));
            facilitator.unpause();
        }
    }

    function test_aPauseStopsAllButTheAdmin() public {
        vm.prank(PAUSER);
        facilitator.pause();
        bytes memory reason = abi.encodeWithSelector(Pausable.EnforcedPause.selector);
        IX402Facilitator.Group[] memory groups = onlyGroup(group(RECIPIENT, payment));

        settleFails(payment, RECIPIENT, reason);
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.settleBatch(address(usdc), groups);
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferDirect(address(usdc), payment, RECIPIENT);
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.transferBatch(address(usdc), groups);
        IPermit2Settlement.Permit2Group memory empty;
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        IPermit2Settlement(address(facilitator)).settlePermit2(empty);
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        IPermit2Settlement(address(facilitator)).settlePermit2Batch(new IPermit2Settlement.Permit2Group[](0));
        vm.prank(RECOVERER);
        vm.expectRevert(reason);
        facilitator.forwardReceived(address(usdc), payment.authorization, payment.signature, RECIPIENT);

        usdc.mint(address(facilitator), 1);
        vm.prank(ADMIN);
        facilitator.announceRescue(address(usdc), STRANGER, 1);
        vm.warp(NOW + facilitator.RESCUE_DELAY());
        vm.prank(ADMIN);
        facilitator.executeRescue(address(usdc), STRANGER, 1);

        vm.warp(NOW);
        vm.prank(PAUSER);
        facilitator.unpause();
        settleAs(OPERATOR);
    }

    /// @dev The operator granted last takes a shorter way through the check of its role; all others the usual one.
    function test_everyOperatorSettles() public {
        grant(SECOND_OPERATOR);
        settleAs(SECOND_OPERATOR);
        settleAs(OPERATOR);
    }

    function test_aRevokedOperatorNoLongerSettles() public {
        grant(SECOND_OPERATOR);
        revoke(SECOND_OPERATOR);
        refusesToSettle(SECOND_OPERATOR);
        settleAs(OPERATOR);
        revoke(OPERATOR);
        refusesToSettle(OPERATOR);
        grant(SECOND_OPERATOR);
        settleAs(SECOND_OPERATOR);
        refusesToSettle(OPERATOR);
    }

    function test_revokingOneOperatorLeavesTheOther() public {
        grant(SECOND_OPERATOR);
        revoke(OPERATOR);
        refusesToSettle(OPERATOR);
        settleAs(SECOND_OPERATOR);
    }

    function test_anOperatorThatRenouncedNoLongerSettles() public {
        vm.prank(OPERATOR);
        roles.renounceRole(operatorRole, OPERATOR);
        refusesToSettle(OPERATOR);
    }

    function test_aRoleGrantedTwiceIsRevokedOnce() public {
        grant(OPERATOR);
        settleAs(OPERATOR);
        revoke(OPERATOR);
        refusesToSettle(OPERATOR);
    }

    function test_otherRolesAreNotTakenForTheOperators() public {
        bytes32 pauserRole = facilitator.PAUSER_ROLE();
        vm.prank(ADMIN);
        roles.grantRole(pauserRole, STRANGER);
        refusesToSettle(STRANGER);
        vm.prank(ADMIN);
        roles.grantRole(pauserRole, OPERATOR);
        vm.prank(ADMIN);
        roles.revokeRole(pauserRole, OPERATOR);
        settleAs(OPERATOR);
    }

    function test_onlyTheAdminGrantsRoles() public {
        vm.prank(OPERATOR);
        vm.expectRevert(unauthorized(OPERATOR, bytes32(0)));
        roles.grantRole(operatorRole, STRANGER);
    }

    function test_theAdminChangesInTwoStepsWithADelay() public {
        vm.prank(ADMIN);
        roles.beginDefaultAdminTransfer(STRANGER);
        vm.warp(NOW + ADMIN_DELAY);
        vm.prank(STRANGER);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAccessControlDefaultAdminRules.AccessControlEnforcedDefaultAdminDelay.selector,
                NOW + ADMIN_DELAY
            )
        );
        roles.acceptDefaultAdminTransfer();
        vm.warp(NOW + ADMIN_DELAY + 1);
        vm.prank(STRANGER);
        roles.acceptDefaultAdminTransfer();
        assertEq(roles.defaultAdmin(), STRANGER, "admin");
    }

    function test_takesNoEther() public {
        (bool success,) = address(facilitator).call{value: 1}("");
        assertFalse(success, "took ether");
    }

    /// @dev As a harness does that wants the contract at a given address.
    function test_codeAndStorageCanBeCarriedToAnotherAddress() public {
        address elsewhere = address(uint160(uint256(keccak256("elsewhere"))));
        vm.etch(elsewhere, address(facilitator).code);
        for (uint256 slot = 0; slot < 8; ++slot) {
            vm.store(elsewhere, bytes32(slot), vm.load(address(facilitator), bytes32(slot)));
        }
        // The roles lie in a mapping, in slot 1.
        bytes32 members = keccak256(abi.encode(operatorRole, uint256(1)));
        vm.store(elsewhere, keccak256(abi.encode(OPERATOR, members)), bytes32(uint256(1)));

        facilitator = IX402Facilitator(elsewhere);
        assertTrue(IAccessControl(elsewhere).hasRole(operatorRole, OPERATOR), "operator");
        settle(pay(PAYER_KEY, 10e6, "nonce"), RECIPIENT);
        settleBatch(address(usdc), onlyGroup(group(RECIPIENT, pay(PAYER_KEY, 10e6, "batch"))));
        assertEq(usdc.balanceOf(RECIPIENT), 20e6, "recipient");
    }

    function settleAs(address operator) private {
        uint256 snapshot = vm.snapshotState();
        vm.prank(operator);
        facilitator.settle(address(usdc), payment.authorization, payment.signature, RECIPIENT);
        vm.prank(operator);
        facilitator.settleBatch(address(usdc), new IX402Facilitator.Group[](0));
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        vm.revertToState(snapshot);
    }

    function refusesToSettle(address account) private {
        bytes memory reason = unauthorized(account, operatorRole);
        vm.prank(account);
        vm.expectRevert(reason);
        facilitator.settle(address(usdc), payment.authorization, payment.signature, RECIPIENT);
        vm.prank(account);
        vm.expectRevert(reason);
        facilitator.settleBatch(address(usdc), new IX402Facilitator.Group[](0));
        vm.prank(account);
        vm.expectRevert(reason);
        facilitator.transferDirect(address(usdc), payment, RECIPIENT);
        vm.prank(account);
        vm.expectRevert(reason);
        facilitator.transferBatch(address(usdc), new IX402Facilitator.Group[](0));
        IPermit2Settlement.Permit2Group memory empty;
        vm.prank(account);
        vm.expectRevert(reason);
        IPermit2Settlement(address(facilitator)).settlePermit2(empty);
        vm.prank(account);
        vm.expectRevert(reason);
        IPermit2Settlement(address(facilitator)).settlePermit2Batch(new IPermit2Settlement.Permit2Group[](0));
        vm.prank(account);
        vm.expectRevert(reason);
        facilitator.deployAndSettle(account, account, "", "");
    }

    function grant(address operator) private {
        vm.prank(ADMIN);
        roles.grantRole(operatorRole, operator);
    }

    function revoke(address operator) private {
        vm.prank(ADMIN);
        roles.revokeRole(operatorRole, operator);
    }

    function unauthorized(address account, bytes32 role) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, account, role);
    }
}
