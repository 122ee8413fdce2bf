// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";

import {IPermit2Settlement} from "../interfaces/IPermit2Settlement.sol";
import {IX402Facilitator} from "../interfaces/IX402Facilitator.sol";
import {Mock1271Wallet} from "../mocks/Mock1271Wallet.sol";
import {MockUSDC} from "../mocks/MockUSDC.sol";
import {Permit2Fixture} from "./utils/Permit2Fixture.sol";
import {Vm} from "./utils/Vm.sol";

interface IBatchFrames {
    function settleGroups(address token, IX402Facilitator.Group[] calldata groups) external;
    function settlePermit2Group(IPermit2Settlement.Permit2Group calldata group) external;
}

/// @title Payers whose wallet is deployed with their payment (ERC-6492)
contract DeployAndSettleTest is Permit2Fixture {
    uint256 private constant STRANDED = 500e6;
    address private constant MERCHANT = address(uint160(uint256(keccak256("merchant"))));

    WalletFactory private factory;
    address private wallet;

    function setUp() public {
        deployWithPermit2();
        usdc.mint(address(facilitator), STRANDED);
        factory = new WalletFactory();
        wallet = factory.walletOf(payer);
        usdc.mint(wallet, 100e6);
    }

    function test_deploysTheWalletAndSettlesThroughTheContract() public {
        deployAndSettle(settleCall(sign("nonce")));
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertDeployed();
    }

    function test_deploysTheWalletAndPaysDirectly() public {
        IX402Facilitator.Authorization memory authorization = authorize(wallet, 10e6, "nonce");
        IX402Facilitator.Payment memory payment =
            IX402Facilitator.Payment(authorization, sign(PAYER_KEY, authorization, MERCHANT));
        deployAndSettle(abi.encodeCall(facilitator.transferDirect, (address(usdc), payment, MERCHANT)));
        assertEq(usdc.balanceOf(MERCHANT), 10e6, "merchant");
        assertDeployed();
    }

    /// @dev A wallet may approve Permit2 as it is deployed.
    function test_deploysTheWalletOfAPermit2Payment() public {
        token.mint(wallet, 100e6);
        vm.prank(wallet);
        token.approve(address(PERMIT2), type(uint256).max);
        deployAndSettle(
            abi.encodeCall(
                settlement.settlePermit2, (adding(groupOf(true, true), wallet, PAYER_KEY, 10e6, 1))
            )
        );
        assertEq(token.balanceOf(RECIPIENT), 10e6, "recipient");
    }

    /// @dev A batch leaves out what is refused; the wallet is then deployed all the same.
    function test_takesABatchToo() public {
        IX402Facilitator.Payment memory forged = sign("forged");
        forged.signature = sign(0xb0b, forged.authorization, address(facilitator));
        deployAndSettle(
            abi.encodeCall(
                facilitator.settleBatch, (address(usdc), onlyGroup(group(RECIPIENT, sign("good"), forged)))
            )
        );
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertDeployed();
    }

    function test_aSignatureThatTheWalletRefusesUndoesItsDeployment() public {
        IX402Facilitator.Payment memory payment = sign("nonce");
        payment.signature = sign(0xb0b, payment.authorization, address(facilitator));
        deployAndSettleFails(settleCall(payment), errorData("FiatTokenV2: invalid signature"));
        assertEq(wallet.code.length, 0, "code of the wallet");
        assertEq(factory.calls(), 0, "calls of the factory");
    }

    function test_aWalletThatSomebodyDeployedIsNoFailure() public {
        factory.deploy(payer);
        deployAndSettle(settleCall(sign("nonce")));
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(factory.calls(), 1, "calls of the factory");
    }

    function test_refusesFactoriesThatDeployNothing() public {
        BadFactory bad = new BadFactory();
        bytes memory data = settleCall(sign("nonce"));
        bytes[5] memory calls = [
            abi.encodeCall(WalletFactory.deploy, (STRANGER)),
            bytes(""),
            abi.encodeCall(BadFactory.fail, ()),
            abi.encodeCall(BadFactory.burn, ()),
            abi.encodeCall(BadFactory.talk, ())
        ];
        address[5] memory factories = [address(factory), STRANGER, address(bad), address(bad), address(bad)];
        for (uint256 i = 0; i < calls.length; ++i) {
            bytes memory reason =
                abi.encodeWithSelector(IX402Facilitator.WalletNotDeployed.selector, wallet, factories[i]);
            uint256 gasBefore = gasleft();
            vm.prank(OPERATOR);
            (bool success, bytes memory result) = address(facilitator)
                .call(abi.encodeCall(facilitator.deployAndSettle, (wallet, factories[i], calls[i], data)));
            assertFalse(success, "settled");
            assertEq(result, reason, "reason");
            assertTrue(gasBefore - gasleft() < 1_100_000, "gas used");
        }
    }

    /// @dev Whatever the payer has called, it is called by an account that may nothing, holds nothing, and is new.
    function test_theFactoryIsCalledByAnAccountWithoutAnyPower() public {
        CuriousFactory curious = new CuriousFactory();
        address[2] memory callers;
        for (uint256 i = 0; i < callers.length; ++i) {
            address account = address(uint160(0x1234 + i));
            bytes memory data = abi.encodeCall(CuriousFactory.deploy, (vm, account));
            bytes memory call = settleCall(pay(PAYER_KEY, 1e6, bytes32(i)));
            vm.prank(OPERATOR);
            facilitator.deployAndSettle(account, address(curious), data, call);
            callers[i] = curious.caller();
            assertEq(callers[i].code.length, 0, "code of the caller");
            assertTrue(
                callers[i] != OPERATOR && callers[i] != address(facilitator) && callers[i].balance == 0,
                "caller"
            );
            bytes32[4] memory roles = [
                bytes32(0),
                facilitator.OPERATOR_ROLE(),
                facilitator.RECOVERER_ROLE(),
                facilitator.PAUSER_ROLE()
            ];
            for (uint256 j = 0; j < roles.length; ++j) {
                assertFalse(IAccessControl(address(facilitator)).hasRole(roles[j], callers[i]), "role");
            }
        }
        assertTrue(callers[0] != callers[1], "the same account twice");
    }

    /// @dev Each of these would do harm if the contract or its operator made the call.
    function test_aFactoryThatIsNoneGetsNothing() public {
        IX402Facilitator.Payment memory victim = pay(PAYER_KEY, 1e6, "victim");
        address[4] memory factories =
            [address(usdc), address(usdc), address(facilitator), address(facilitator)];
        bytes[4] memory calls = [
            abi.encodeCall(usdc.transfer, (STRANGER, STRANDED)),
            abi.encodeCall(usdc.approve, (STRANGER, type(uint256).max)),
            abi.encodeCall(
                facilitator.settle, (address(usdc), victim.authorization, victim.signature, STRANGER)
            ),
            abi.encodeCall(IAccessControl.grantRole, (facilitator.OPERATOR_ROLE(), STRANGER))
        ];
        bytes memory call = settleCall(pay(PAYER_KEY, 1e6, "other"));
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.prank(OPERATOR);
            vm.expectRevert(
                abi.encodeWithSelector(
                    IX402Facilitator.WalletNotDeployed.selector, address(0xdead), factories[i]
                )
            );
            facilitator.deployAndSettle(address(0xdead), factories[i], calls[i], call);
        }
        assertEq(usdc.balanceOf(STRANGER), 0, "stranger");
        assertEq(usdc.balanceOf(address(facilitator)), STRANDED, "stranded");
        assertEq(usdc.allowance(address(facilitator), STRANGER), 0, "allowance");
    }

    /// @dev What the factory has submitted is used, and nothing is paid for it twice.
    function test_aFactoryThatSubmitsThePaymentItselfPaysNobodyTwice() public {
        IX402Facilitator.Payment memory payment = sign("nonce");
        SubmittingFactory submitting = new SubmittingFactory(factory);
        bytes memory data =
            abi.encodeCall(SubmittingFactory.deploy, (payer, usdc, payment, address(facilitator)));
        bytes memory call = settleCall(payment);
        vm.prank(OPERATOR);
        vm.expectRevert(errorData("FiatTokenV2: authorization is used or canceled"));
        facilitator.deployAndSettle(wallet, address(submitting), data, call);
        assertEq(usdc.balanceOf(wallet), 100e6, "wallet");

        // A payment beside it is stranded, as any that is submitted directly, and stays.
        call = settleCall(sign("other"));
        vm.prank(OPERATOR);
        facilitator.deployAndSettle(wallet, address(submitting), data, call);
        assertEq(usdc.balanceOf(RECIPIENT), 10e6, "recipient");
        assertEq(usdc.balanceOf(address(facilitator)), STRANDED + 10e6, "stranded");
    }

    function test_onlyOperatorsDeployAndNotWhilePaused() public {
        bytes32 role = facilitator.OPERATOR_ROLE();
        bytes memory data = settleCall(sign("nonce"));
        address[4] memory others = [ADMIN, RECOVERER, PAUSER, STRANGER];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(
                abi.encodeWithSelector(
                    IAccessControl.AccessControlUnauthorizedAccount.selector, others[i], role
                )
            );
            facilitator.deployAndSettle(wallet, address(factory), "", data);
        }
        vm.prank(PAUSER);
        facilitator.pause();
        deployAndSettleFails(data, abi.encodeWithSignature("EnforcedPause()"));
    }

    /// @dev Nothing that the operator could not do without it.
    function test_theSettlementIsTheOperatorsOwnCall() public {
        bytes memory notSelf = abi.encodeWithSelector(IX402Facilitator.OnlySelf.selector, OPERATOR);
        deployAndSettleFails(
            abi.encodeCall(
                IBatchFrames.settleGroups, (address(usdc), onlyGroup(group(STRANGER, sign("nonce"))))
            ),
            notSelf
        );
        deployAndSettleFails(
            abi.encodeCall(IBatchFrames.settlePermit2Group, (groupOf(false, false))), notSelf
        );
        IX402Facilitator.Payment memory payment = sign("nonce");
        deployAndSettleFails(
            abi.encodeCall(
                facilitator.forwardReceived,
                (address(usdc), payment.authorization, payment.signature, STRANGER)
            ),
            abi.encodeWithSelector(
                IAccessControl.AccessControlUnauthorizedAccount.selector,
                OPERATOR,
                facilitator.RECOVERER_ROLE()
            )
        );
        deployAndSettleFails(
            abi.encodeCall(IAccessControl.grantRole, (facilitator.OPERATOR_ROLE(), STRANGER)),
            abi.encodeWithSelector(
                IAccessControl.AccessControlUnauthorizedAccount.selector, OPERATOR, bytes32(0)
            )
        );
        deployAndSettleFails("", "");
    }

    /// @dev With every amount of gas: all of it, or a want of gas.
    function test_howeverLittleGasThereIsTheWalletIsNotBlamed() public {
        bytes memory data = abi.encodeCall(
            facilitator.deployAndSettle, (wallet, address(factory), deployCall(), settleCall(sign("nonce")))
        );
        bool success = false;
        uint256 shortages = 0;
        for (uint256 amount = 30_000; !success; amount += 2_997) {
            uint256 snapshot = vm.snapshotState();
            vm.prank(OPERATOR);
            bytes memory result;
            (success, result) = address(facilitator).call{gas: amount}(data);
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

    function sign(bytes32 nonce) private view returns (IX402Facilitator.Payment memory) {
        return signPayment(PAYER_KEY, authorize(wallet, 10e6, nonce));
    }

    function settleCall(IX402Facilitator.Payment memory payment) private view returns (bytes memory) {
        return abi.encodeCall(
            facilitator.settle, (address(usdc), payment.authorization, payment.signature, RECIPIENT)
        );
    }

    function deployCall() private view returns (bytes memory) {
        return abi.encodeCall(WalletFactory.deploy, (payer));
    }

    function deployAndSettle(bytes memory call) private {
        vm.prank(OPERATOR);
        facilitator.deployAndSettle(wallet, address(factory), deployCall(), call);
    }

    function deployAndSettleFails(bytes memory call, bytes memory reason) private {
        vm.prank(OPERATOR);
        vm.expectRevert(reason);
        facilitator.deployAndSettle(wallet, address(factory), deployCall(), call);
    }

    function assertDeployed() private view {
        assertTrue(wallet.code.length != 0, "code of the wallet");
        assertEq(usdc.balanceOf(wallet), 90e6, "wallet");
        assertEq(usdc.balanceOf(address(facilitator)), STRANDED, "stranded");
    }
}

contract WalletFactory {
    uint256 public calls;

    function deploy(address owner) external {
        ++calls;
        new Mock1271Wallet{salt: 0}(owner);
    }

    function walletOf(address owner) external view returns (address) {
        bytes32 initCode = keccak256(bytes.concat(type(Mock1271Wallet).creationCode, abi.encode(owner)));
        bytes32 digest = keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), initCode));
        return address(uint160(uint256(digest)));
    }
}

contract BadFactory {
    function fail() external pure {
        revert("no wallets today");
    }

    function burn() external pure {
        assembly ("memory-safe") {
            invalid()
        }
    }

    function talk() external pure {
        assembly ("memory-safe") {
            return(0, 100000)
        }
    }
}

/// @dev Remembers who called.
contract CuriousFactory {
    address public caller;

    function deploy(Vm vm, address wallet) external {
        caller = msg.sender;
        vm.etch(wallet, hex"00");
    }
}

/// @dev Submits a payment of the wallet as soon as it has deployed it.
contract SubmittingFactory {
    WalletFactory private immutable FACTORY;

    constructor(WalletFactory factory) {
        FACTORY = factory;
    }

    function deploy(address owner, MockUSDC usdc, IX402Facilitator.Payment calldata payment, address to)
        external
    {
        FACTORY.deploy(owner);
        IX402Facilitator.Authorization calldata authorization = payment.authorization;
        usdc.transferWithAuthorization(
            authorization.from,
            to,
            authorization.value,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            payment.signature
        );
    }
}
