// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {FacilitatorTest} from "./utils/FacilitatorTest.sol";
import {Behaviour, MisbehavingToken} from "./utils/MisbehavingToken.sol";
import {Vm} from "./utils/Vm.sol";

contract RescueTest is FacilitatorTest {
    uint256 private delay;
    uint256 private window;
    bytes private notAnnounced;

    function setUp() public override {
        super.setUp();
        usdc.mint(address(facilitator), 10e6);
        delay = facilitator.RESCUE_DELAY();
        window = facilitator.RESCUE_WINDOW();
        notAnnounced = abi.encodeWithSelector(
            IX402Facilitator.RescueNotAnnounced.selector, address(usdc), RECIPIENT, 10e6
        );
    }

    function test_sendsTheFundsAfterTheDelay() public {
        vm.recordLogs();
        announce();
        assertEq(facilitator.rescueExecutableAt(key()), NOW + delay, "executable at");
        vm.warp(NOW + delay);
        execute();
        Vm.Log[] memory logs = vm.getRecordedLogs();

        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(facilitator.rescueExecutableAt(key()), 0, "executable at");
        assertEq(logs[0].topics[0], IX402Facilitator.RescueAnnounced.selector, "first event");
        assertEq(logs[0].data, abi.encode(10e6, NOW + delay), "value and time");
        assertEq(logs[2].topics[0], IX402Facilitator.RescueExecuted.selector, "last event");
        assertEq(logs[2].data, abi.encode(10e6), "value");
    }

    function test_isDoneOnce() public {
        announce();
        vm.warp(NOW + delay);
        execute();
        usdc.mint(address(facilitator), 10e6);
        vm.prank(ADMIN);
        vm.expectRevert(notAnnounced);
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    function test_mustBeAnnounced() public {
        vm.prank(ADMIN);
        vm.expectRevert(notAnnounced);
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    function test_isBoundToWhatWasAnnounced() public {
        announce();
        vm.warp(NOW + delay);
        vm.prank(ADMIN);
        vm.expectRevert(
            abi.encodeWithSelector(
                IX402Facilitator.RescueNotAnnounced.selector, address(usdc), STRANGER, 10e6
            )
        );
        facilitator.executeRescue(address(usdc), STRANGER, 10e6);
    }

    function test_mustWait() public {
        announce();
        vm.warp(NOW + delay - 1);
        vm.prank(ADMIN);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.RescueTooEarly.selector, NOW + delay));
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    function test_expires() public {
        announce();
        vm.warp(NOW + delay + window);
        vm.prank(ADMIN);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.RescueExpired.selector, NOW + delay + window));
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);

        vm.warp(NOW + delay + window - 1);
        execute();
    }

    function test_announcedAgainItWaitsAnew() public {
        announce();
        vm.warp(NOW + delay);
        announce();
        vm.prank(ADMIN);
        vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.RescueTooEarly.selector, NOW + 2 * delay));
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    function test_canBeCancelled() public {
        announce();
        vm.recordLogs();
        vm.prank(ADMIN);
        facilitator.cancelRescue(address(usdc), RECIPIENT, 10e6);
        assertEq(
            vm.getRecordedLogs()[0].topics[0], IX402Facilitator.RescueCancelled.selector, "cancellation event"
        );
        vm.warp(NOW + delay);
        vm.prank(ADMIN);
        vm.expectRevert(notAnnounced);
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
        vm.prank(ADMIN);
        vm.expectRevert(notAnnounced);
        facilitator.cancelRescue(address(usdc), RECIPIENT, 10e6);
    }

    function test_refusesRecipientsThatCannotBePaid() public {
        address[2] memory recipients = [address(0), address(facilitator)];
        for (uint256 i = 0; i < recipients.length; ++i) {
            vm.prank(ADMIN);
            vm.expectRevert(abi.encodeWithSelector(IX402Facilitator.InvalidRecipient.selector, recipients[i]));
            facilitator.announceRescue(address(usdc), recipients[i], 10e6);
        }
    }

    function test_passesTheTokensReasonOn() public {
        announce();
        vm.warp(NOW + delay);
        vm.prank(ISSUER);
        usdc.blacklist(RECIPIENT);
        vm.prank(ADMIN);
        vm.expectRevert(errorData("Blacklistable: account is blacklisted"));
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    /// @dev With the admin role in the hands of the token itself, so that only the guard is left to stop it.
    function test_cannotBeExecutedWhileAnotherCallIsUnderWay() public {
        MisbehavingToken token = new MisbehavingToken();
        facilitator = IX402Facilitator(
            deployCode(
                "X402Facilitator",
                abi.encode(ADMIN_DELAY, address(token), new address[](0), address(0), address(0))
            )
        );
        token.mint(address(facilitator), 20);
        vm.prank(address(token));
        facilitator.announceRescue(address(token), RECIPIENT, 10);
        vm.prank(address(token));
        facilitator.announceRescue(address(token), STRANGER, 10);
        vm.warp(NOW + delay);
        token.callOut(
            address(facilitator), abi.encodeCall(facilitator.executeRescue, (address(token), STRANGER, 10))
        );
        token.behave(Behaviour.Correct, Behaviour.Call);
        vm.prank(address(token));
        vm.expectRevert(
            abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector)
        );
        facilitator.executeRescue(address(token), RECIPIENT, 10);
    }

    function test_isForTheAdminAlone() public {
        address[4] memory others = [OPERATOR, RECOVERER, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            bytes memory reason = abi.encodeWithSelector(
                IAccessControl.AccessControlUnauthorizedAccount.selector, others[i], bytes32(0)
            );
            vm.prank(others[i]);
            vm.expectRevert(reason);
            facilitator.announceRescue(address(usdc), RECIPIENT, 10e6);
            vm.prank(others[i]);
            vm.expectRevert(reason);
            facilitator.cancelRescue(address(usdc), RECIPIENT, 10e6);
            vm.prank(others[i]);
            vm.expectRevert(reason);
            facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
        }
    }

    function announce() private {
        vm.prank(ADMIN);
        facilitator.announceRescue(address(usdc), RECIPIENT, 10e6);
    }

    function execute() private {
        vm.prank(ADMIN);
        facilitator.executeRescue(address(usdc), RECIPIENT, 10e6);
    }

    function key() private view returns (bytes32) {
        return keccak256(abi.encode(address(usdc), RECIPIENT, 10e6));
    }
}
